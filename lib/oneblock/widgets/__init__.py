"""Interactive figures: the same script draws them in Jupyter and on a page without a kernel."""

from oneblock.widgets.controls import Choice, Sliders, span
from oneblock.widgets.explorer import Explorer
from oneblock.widgets.figure import site_assets
from oneblock.widgets.stepper import Stepper
from oneblock.widgets.table import Table
from oneblock.widgets.view import curves_view, steps_view, table_view

__all__ = [
    "Choice",
    "Explorer",
    "Sliders",
    "Stepper",
    "Table",
    "curves_view",
    "site_assets",
    "span",
    "steps_view",
    "table_view",
]
