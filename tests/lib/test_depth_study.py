"""The stored study of depth is what its script would store: a sample of it is made anew."""

import importlib.util
from itertools import product
from pathlib import Path

import pytest

from oneblock.depth import LOSSES, TEXT, TOKEN, Summary, summarise
from oneblock.stacks import INITS, STRUCTURES
from oneblock.stored import load, pick

DATA = Path(__file__).parents[2] / "book" / "data"
STORED = load(DATA / "depth_study.json", Summary)
# Three significant digits: at worst 1.005 is stored as 1.00 or 1.01.
DIGITS = 5.1e-3


def script(name):
    spec = importlib.util.spec_from_file_location(name, DATA / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_holds_every_kind_once():
    kinds = [(one.structure, one.init, one.loss, one.K) for one in STORED]
    assert kinds == list(product(STRUCTURES, INITS, LOSSES, script("depth_study").DEPTHS))


def test_the_stored_studies_are_small():
    assert sum(path.stat().st_size for path in DATA.glob("*.json")) < 200_000


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize(
    ("init", "loss", "K"), [("PyTorch's default", TEXT, 2), ("Xavier", TOKEN, 8), ("branches / √(2K)", TEXT, 4)]
)
def test_a_sample_of_it_is_found_again(structure, init, loss, K):
    (stored,) = pick(STORED, structure=structure, init=init, loss=loss, K=K)
    anew = summarise(structure, K, init, loss)
    assert stored[:6] == anew[:6]
    for name, curve in anew.curves.items():
        assert stored.curves[name] == [pytest.approx(three, rel=DIGITS) for three in curve], name
