"""Interactive figures: the same script draws them in Jupyter and on a page without a kernel."""

from oneblock.widgets.card import Code, card_view
from oneblock.widgets.charts import Varying, curves_view, heat_view, table_view
from oneblock.widgets.controls import Choice, Sliders, Text, span
from oneblock.widgets.explorer import Explorer
from oneblock.widgets.figure import site_assets
from oneblock.widgets.progress import progress
from oneblock.widgets.sentence import Sentence
from oneblock.widgets.stepper import Stepper
from oneblock.widgets.steps import steps_view
from oneblock.widgets.table import Table

__all__ = [
    "Choice",
    "Code",
    "Explorer",
    "Sentence",
    "Sliders",
    "Stepper",
    "Table",
    "Text",
    "Varying",
    "card_view",
    "curves_view",
    "heat_view",
    "progress",
    "site_assets",
    "span",
    "steps_view",
    "table_view",
]
