"""The library's modules stand in layers; a module imports from the layers below its own only."""

import ast
from pathlib import Path

import pytest

import oneblock

LAYERS = [
    ["failures", "fast_path", "modes", "notation", "precision", "stored"],
    ["errors"],
    ["costs", "memory", "names", "trace", "words"],
    ["activations", "baselines", "masks", "misreadings", "norms", "norms_pitfalls", "residual", "slopes", "tour"],
    ["attention", "ffn", "jacobians", "padding"],
    ["blocks", "dependency"],
    ["neighbours.frame", "neighbours.measured", "neighbours.reading", "neighbours.windowed"],
    [
        "neighbours.attention_only",
        "neighbours.causal",
        "neighbours.convolution",
        "neighbours.gated",
        "neighbours.mixer",
        "neighbours.mixture",
    ],
    ["neighbours.decoder"],
    ["neighbours"],
    ["mutants.plain"],
    ["mutants.attention", "mutants.dropouts", "mutants.masks", "mutants.networks", "mutants.norms", "mutants.ports", "mutants.sums"],
    ["classifier", "mutants", "official", "training"],
    ["mutants.classifiers", "naming", "parity", "polarity", "stacks"],
    ["depth", "orders"],
    ["failures.positions"],
    [
        "failures.addition",
        "failures.brackets",
        "failures.longer",
        "failures.memorising",
        "failures.packing",
        "failures.quadratic",
        "failures.width",
    ],
    ["failures.ragged"],
    ["mutants.procedures"],
    ["mutants.catalogue"],
    ["checks.models", "checks.procedures"],
    ["checks.finding", "checks.found", "checks.guard", "checks.operations"],
    ["checks.subject"],
    ["checks.examination", "checks.models.held", "checks.models.model", "checks.probes", "checks.report"],
    ["checks.bench"],
    ["checks.effects", "checks.roles"],
    ["checks.parts"],
    ["checks.standard"],
    [
        "checks.dtypes",
        "checks.gradients",
        "checks.independence",
        "checks.input_kept",
        "checks.nonfinite",
        "checks.norm_axes",
        "checks.official_parity",
        "checks.overfit",
        "checks.padding_leak",
        "checks.shapes",
        "checks.sharing",
        "checks.sublayers",
        "checks.train_eval",
        "checks.models.probes",
        "checks.procedures.comparison",
        "checks.procedures.loss",
        "checks.procedures.prediction",
        "checks.procedures.step",
    ],
    [
        "checks.depth_gradient",
        "checks.models.contract",
        "checks.models.final_norm",
        "checks.models.modes",
        "checks.models.order",
        "checks.models.padding",
        "checks.models.parameters",
        "checks.models.reference",
        "checks.models.texts",
        "checks.procedures.diagnosis",
    ],
    ["checks.models.diagnosis"],
    ["checks.dropout_sites", "checks.reference_parity", "checks.residual_ratio"],
    ["checks.diagnosis"],
    ["checks.pytests"],
    ["checks"],
    ["clinic"],
    ["__main__"],
    ["widgets.numbers"],
    ["widgets.controls", "widgets.view"],
    ["widgets.card", "widgets.charts", "widgets.progress", "widgets.steps"],
    ["widgets.table"],
    ["widgets.figure"],
    ["widgets.explorer", "widgets.stepper"],
    ["widgets.sentence"],
    ["widgets"],
    ["exercises.exercise", "exercises.quiz"],
    ["exercises.rows", "exercises.tokens", "exercises.wholes"],
    ["exercises.catalogue"],
    ["exercises.checker"],
    ["exercises"],
]
LAYER_OF = {name: height for height, names in enumerate(LAYERS) for name in names}
ROOT = Path(oneblock.__file__).parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if path != ROOT / "__init__.py"
}
NO_FIGURE = [name for name in FILES if not name.startswith("widgets")]


def imports(path):
    """The full names of the modules a file imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            yield from (f"oneblock.{alias.name}" for alias in node.names) if node.module == "oneblock" else [node.module]


def own(names):
    return {name.removeprefix("oneblock.") for name in names if name.startswith("oneblock.")}


def test_every_module_has_its_layer():
    assert sorted(FILES) == sorted(LAYER_OF)


@pytest.mark.parametrize("name", FILES)
def test_imports_point_down(name):
    upward = {other for other in own(imports(FILES[name])) if LAYER_OF[other] >= LAYER_OF[name]}
    assert upward == set()


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("widgets")])
def test_a_figure_knows_traces_and_numbers_but_nothing_of_a_block(name):
    known = {"errors", "misreadings", "notation", "trace", "words"}
    assert {other for other in own(imports(FILES[name])) if not other.startswith("widgets")} <= known


@pytest.mark.parametrize("name", NO_FIGURE)
def test_the_mathematics_needs_no_notebook(name):
    packages = {module.split(".")[0] for module in imports(FILES[name])}
    assert packages.isdisjoint({"anywidget", "IPython", "ipywidgets", "traitlets"})


@pytest.mark.parametrize("name", FILES)
def test_a_module_imports_at_its_head(name):
    tree = ast.parse(FILES[name].read_text("utf-8"))
    nested = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in tree.body]
    assert nested == []
