"""Bars on a terminal, lines elsewhere, on standard error alone."""

import sys

import pytest
import torch

from tessella.progress import SECONDS, Progress, counted, each, watching


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_a_line_every_few_seconds(capsys):
    clock = Clock()
    with Progress("training", 1000, clock=clock) as progress:
        for step in range(1, 701):
            clock.now = step * SECONDS / 100
            progress.move(step, f"loss {step}")
    said = capsys.readouterr()
    assert said.out == ""
    assert "\r" not in said.err
    assert said.err.splitlines() == [f"training: {n}/1000 ({n // 10}%), loss {n}" for n in range(100, 701, 100)]


@pytest.mark.parametrize("keep", [True, False])
def test_the_last_state_is_said_once_if_it_shall_stay(capsys, keep: bool):
    with Progress("rows", None, keep=keep, clock=Clock()) as progress:
        progress.move(3)
    assert capsys.readouterr().err == ("rows: 3\n" if keep else "")


def test_on_a_terminal_a_bar_that_ends_where_it_stopped(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress("training", 10) as progress:
        for step in range(1, 8):
            progress.move(step, "loss 1.0")
    said = capsys.readouterr()
    last = said.err.rstrip("\n").split("\r")[-1]
    assert said.out == ""
    assert said.err.endswith("\n")
    assert "70%" in last
    assert "7/10, loss 1.0" in last


def test_invisible_says_nothing(capsys, monkeypatch):
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        with Progress("rows", 2, visible=False) as progress:
            progress.move(2)
        with watching("rows", 2, visible=False):
            assert len(list(counted(torch.zeros(2, 1).split(1)))) == 2
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_whoever_watches_hears_of_every_row(monkeypatch):
    moves = []
    monkeypatch.setattr(Progress, "move", lambda self, n, note="": (moves.append(n), setattr(self, "n", n)))
    with watching("rows", 7):
        list(counted(torch.zeros(5, 1).split(2)))
        list(counted([(torch.zeros(2, 1), torch.zeros(2, 3))]))  # a batch has as many rows as its tensors
    list(counted(torch.zeros(5, 1).split(2)))  # nobody watches
    assert moves == [2, 4, 5, 7]


def test_a_loop_that_is_left_early_closes_its_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for item in each("abc", "letters"):
        if item == "b":
            break
    assert "letters" in capsys.readouterr().err
    from tqdm import tqdm

    assert not tqdm._instances
