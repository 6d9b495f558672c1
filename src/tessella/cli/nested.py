"""Commands that have commands of their own: one function each."""

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Annotated, Any, Union

import tyro


def one_of(functions: Mapping[str, Callable[..., None]]) -> Any:
    """The type of an argument that is one of these functions with its arguments, not yet called."""
    return Union[  # noqa: UP007  # its members are not known before it runs
        tuple(
            Annotated[Any, tyro.conf.subcommand(name=name, constructor=_chosen(function))]
            for name, function in functions.items()
        )
    ]


def _chosen(function: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """The function with its arguments, not yet called: errors belong to it, not to the parsing of the command line."""

    @wraps(function)
    def with_arguments(*args: Any, **kwargs: Any) -> Callable[[], None]:
        return partial(function, *args, **kwargs)

    return with_arguments
