"""Figures of every kind for the tests, each with the function that computes what it shows."""

import torch

from oneblock.activations import ACTIVATIONS
from oneblock.ffn import ffn
from oneblock.names import words_of
from oneblock.norms import layer_norm, rms_norm
from oneblock.residual import residual
from oneblock.trace import record, scope
from oneblock.widgets import Choice, Code, Explorer, Sentence, Sliders, Stepper, Text, card_view, curves_view, heat_view, span, steps_view, table_view


def numbers(value):
    return torch.tensor(value, dtype=torch.float64)


X, W1, W2 = numbers([1, 2]), numbers([[1, -1], [0.5, 0.5]]), numbers([[2, 0], [0, -1]])
B = numbers([0, 0])
FOUR = numbers([-1, 5, 5, 7])
VALUES = span(-2, 2, 0.5)


def by_hand(x=X, W1=W1, activation="relu"):
    return record(lambda: residual(x, ffn(x, W1, B, W2, B.clone(), activation)))


def two_norms():
    """Leading axes N = 2, L = 3, a scope, a kept axis and a given scalar."""

    def both(x, gamma):
        with scope("first"):
            normed = layer_norm(x, eps=0.5)
        with scope("second"):
            return layer_norm(normed, gamma, eps=0.25)

    generator = torch.Generator().manual_seed(0)
    return record(both, torch.randn(2, 3, 5, dtype=torch.float64, generator=generator), numbers([1, -1, 0.5, 2, 3]))


def side_by_side(x, gamma, eps):
    ln, rms = record(layer_norm, x, gamma, eps=eps), record(rms_norm, x, gamma, eps=eps)
    return table_view(["", "LN", "RMS"], [["measured", ln["std"], rms["rms"]], ["result", ln["ln"], rms["rmsnorm"]]])


GRID = torch.linspace(-4, 4, 41, dtype=torch.float64)


def curves(x):
    heights = {name: phi(numbers(x)).item() for name, phi in ACTIVATIONS.items()}
    return curves_view(GRID, {name: phi(GRID) for name, phi in ACTIVATIONS.items()}, at=x, heights=heights)


TRACES = {"by hand": by_hand, "four features": lambda: record(layer_norm, FOUR, eps=0.0), "two norms": two_norms}


def shares(scale):
    """A matrix and its negative, each number times ``scale``; one is 0 and one is no number."""
    A = numbers([[1, -2, 0], [0.5, float("nan"), 4]]) * scale
    return heat_view({"A": A, "−A": -A}, rows=["r1", "r2"], columns=["c1", "c2", "c3"], corner="row")


def falls(power):
    powers = torch.arange(-6.0, 1.0, dtype=torch.float64)
    heights = {"10^p": 10.0**power, "nothing": 0.0}
    series = {"10^p": 10**powers, "nothing": 0 * powers + numbers([0, 0, 1, 1, 1, 0, 0])}
    return curves_view(powers, series, label="p", at=power, heights=heights, log=True)


def stepper(name, **options):
    return Stepper(TRACES[name](), title=name, **options)


def steps_explorer(**options):
    x, weights = Sliders([1, 2], VALUES), Sliders([[1, -1], [0.5, 0.5]], VALUES)
    choice = Choice(["relu", "gelu", "silu"])
    return Explorer(by_hand, title="steps", one_at_a_time=True, x=x, W1=weights, activation=choice, **options)


def table_explorer():
    sliders = {"x": Sliders([-1, 5], [-1, 0, 5]), "gamma": Sliders([1, 1], [-0.5, 1, 2]), "eps": Sliders(0, [0, 1e-5, 1 / 3])}
    return Explorer(side_by_side, title="table", **sliders)


def curves_explorer():
    return Explorer(curves, title="curves", x=Sliders(1.0, span(-4, 4, 0.25)))


def measured(text):
    """Up to three words, each a row of its length, its vowels and a 1."""
    words = words_of(text, L=3)
    rows = [[len(word), sum(word.count(vowel) for vowel in "AEIOU"), 1] for word in words] + [[0, 0, 1]] * (3 - len(words))
    trace = record(layer_norm, numbers(rows).double(), eps=0.5)
    return steps_view(trace, labels={"L": words + ["·"] * (3 - len(words))})


def text_explorer():
    return Explorer(measured, title="texts", text=Text(["NOT BAD", "BAD", "SO SO WHAT"]))


def heat_explorer():
    return Explorer(shares, title="heat", scale=Sliders(1, [-1, 1, 1000]))


def log_explorer():
    return Explorer(falls, title="log", power=Sliders(-3.0, span(-6, 0, 0.5)))


def told(mistake):
    """One of two cards: a text that has to be broken, code of one line or two, and a row that only one of them has."""
    right = "return q @ k.mT / sqrt(E)"
    cards = {
        "unscaled": ["The scores are not divided by √E, and with wider heads they grow.", f"- {right}\n+ return q @ k.mT", ""],
        "other": ["Nothing else <b>is</b> wrong.", f"- {right}", "With {0} heads."],
    }
    story, lines, hides = cards[mistake]
    return card_view({"What happened": story, "Lines": Code(lines), "It hides": hides})


def card_explorer():
    return Explorer(told, title="card", mistake=Choice(["unscaled", "other"]))


def length_sentence():
    counts = lambda L: {"scores": int(L * L), "share": 1 / L}
    return Sentence("At L = {L} there are {scores} scores, and an even share is {share}.", counts, L=Sliders(4, [1, 2, 4, 8, 16]))


def eps_sentence():
    def row(eps):
        return {"where": "far from zero" if eps else "not there", "y": numbers(eps).rsqrt()}

    return Sentence("With ε = {eps} the row is {where}: {y}.", row, eps=Sliders(1e-5, [0, 1e-8, 1e-5, 1e-3]))


def one_of_each():
    """A page with every kind of figure."""
    steppers = [stepper("by hand"), stepper("four features", predict=True), stepper("two norms")]
    return [*steppers, steps_explorer(), table_explorer(), curves_explorer(), heat_explorer(), log_explorer(), text_explorer(), card_explorer()]
