"""Where the parts of a table are worked on: in this process, or by the workers of a Ray cluster.

Either way results come in the order of the parts, so that one process writes them, and what it writes is the same.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from logging import ERROR
from typing import Any, Literal, Protocol, TypeVar

Result = TypeVar("Result")
RETRIES = 3  # of a part whose worker died
SECONDS = 20.0  # until somebody answers
AHEAD = 4  # parts of each worker whose results may wait for their turn


class Part(Protocol):
    """Some rows; as a text it says which."""

    @property
    def rows(self) -> int:
        """How many."""
        ...


@dataclass(frozen=True)
class EngineOptions:
    """Which engine, and how much of it."""

    engine: Literal["local", "ray"] = "local"
    """Where the work is done: local, in this process; ray, by the workers of a Ray cluster, with the same result, of
    Parquet files. Needs pip install "tessella[ray]"."""
    address: str | None = None
    """Of a Ray cluster. Without it the one of RAY_ADDRESS; where that is unset, too, one is started on this machine."""
    workers: int | None = None
    """Of Ray, at most; without it as many as the cluster has room for."""
    threads: int = 1
    """Of each worker of Ray, which takes as many of its cores."""
    gpus: float = 0.0
    """Of each worker of Ray: 0.5 lets two of them share one."""

    def __post_init__(self) -> None:
        if self.engine == "local":
            given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
            if given:
                raise ValueError(f"{given[0]}: got it for the local engine; expected it with --engine ray")
        for name, least in (("workers", 1), ("threads", 1), ("gpus", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name}: got {value}; expected at least {least}")


def spread(
    work: Callable[[Any], Iterator[Result]], parts: Sequence[Part | None], options: EngineOptions
) -> Iterator[Result]:
    """All results of all parts, in their order.

    Args:
        work: what to do with a part; with Ray it is pickled, and all results of a part have to fit into memory.
        parts: of the table; None is all of it.
        options: which engine.
    """
    if options.engine == "ray":
        return _on_ray(work, parts, options)
    return (result for part in parts for result in work(part))


def _on_ray(
    work: Callable[[Any], Iterator[Result]], parts: Sequence[Part | None], options: EngineOptions
) -> Iterator[Result]:
    """Tasks, as many at a time as there is room for workers; those that are done wait for their turn."""
    from tessella.progress import passed

    with connected(options) as ray:
        task = ray.remote(
            num_cpus=options.threads,
            num_gpus=options.gpus,
            max_retries=RETRIES,
            max_calls=0,  # a worker stays, and its model in it
        )(_work)
        pickled, room = ray.put(ray.cloudpickle.dumps(work)), _room(ray, options)
        todo, waiting, running = deque(parts), deque[tuple[Part | None, Any]](), list[Any]()
        try:
            while todo or waiting:
                while todo and len(running) < room and len(waiting) < AHEAD * room:
                    part = todo.popleft()
                    running.append(task.remote(pickled, part, options.threads))
                    waiting.append((part, running[-1]))
                _, running = ray.wait(running)
                while waiting and waiting[0][1] not in running:
                    part, result = waiting.popleft()
                    yield from _got(ray, result, part)
                    passed(part.rows if part else 0)
        finally:
            for one in running:
                ray.cancel(one, force=True)


def _work(pickled: bytes, part: Any, threads: int) -> list[Any]:
    """In a worker."""
    import pickle

    import torch

    torch.set_num_threads(threads)
    return list(pickle.loads(pickled)(part))


def _got(ray: Any, result: Any, part: Part | None) -> list[Any]:
    """The results of a part, or the error that it ended with, as if it had happened here."""
    from tessella.folders import one_line

    try:
        found: list[Any] = ray.get(result)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, Exception) else error) from None
    except ray.exceptions.RayError as error:
        raise ChildProcessError(
            f"{part}: no worker could finish it, in {RETRIES + 1} attempts ({one_line(error)})"
        ) from error
    return found


@contextmanager
def connected(options: EngineOptions) -> Iterator[Any]:
    """Ray, connected to the cluster that is meant, unless this program has done that itself."""
    from tessella.folders import one_line

    try:
        import ray
    except ImportError as error:
        raise ValueError('engine: got ray, which is not installed; try pip install "tessella[ray]"') from error
    if ray.is_initialized():
        yield ray
        return
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    own: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        own = {"include_dashboard": False, "num_cpus": options.workers and options.workers * options.threads}
    try:
        _check_answers(address)
        ray.init(address, log_to_driver=False, logging_level=ERROR, **own)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(f"address: got {address!r}; no Ray cluster lets us in ({one_line(error)})") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Somebody listens at HOST:PORT; Ray itself would try for many minutes. Other addresses are Ray's own words."""
    from socket import create_connection

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        create_connection((host, int(port)), timeout=SECONDS).close()


def _room(ray: Any, options: EngineOptions) -> int:
    """For how many workers; a number that was given is believed, as a cluster may grow."""
    if options.workers:
        return options.workers
    there = ray.cluster_resources()
    needs = {"CPU": ("threads", options.threads), "GPU": ("gpus", options.gpus)}
    for kind, (name, each) in needs.items():
        if each > there.get(kind, 0):
            raise ValueError(f"{name}: got {each} for each worker; the Ray cluster has {there.get(kind, 0):g}")
    return min(int(there[kind] // each) for kind, (_, each) in needs.items() if each)
