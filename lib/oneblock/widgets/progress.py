"""A bar that moves while a loop runs. A page without a kernel shows its label."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import ipywidgets
from IPython.display import display

from oneblock.widgets.view import check_text

T = TypeVar("T")


class _Bar(ipywidgets.IntProgress):
    """The bar of ipywidgets, but its text is the label: no count and no address, which differ from run to run."""

    def _repr_mimebundle_(self, **kwargs: object) -> dict:
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": self.description}


def progress(label: str) -> Callable[[Sequence[T]], Iterator[T]]:
    """A function to wrap around a list: it hands its items on, and a bar counts them as they are done.

    ``tqdm`` is such a function too, for a terminal.

    Raises:
        ArgumentError: ``label`` is not a text.
    """
    check_text("label", label)

    def counted(items: Sequence[T]) -> Iterator[T]:
        bar = _Bar(max=len(items), description=label, style={"description_width": "initial"})
        display(bar)
        for item in items:
            yield item
            bar.value += 1

    return counted
