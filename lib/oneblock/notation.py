"""One key of letters: what every named tensor is called and which axes it has.

Axes, everywhere in the book: ``N`` batch, ``L`` sequence length, ``D`` model width, ``F`` FFN width.
``1`` is an axis that a reduction kept. A tensor may have leading axes beside those listed here:
``N L`` in front when it has two more, ``L`` when it has one.
"""

from typing import NamedTuple


class Symbol(NamedTuple):
    """How a tensor is written, and the axes it ends with."""

    text: str
    axes: tuple[str, ...]


def _symbols(**entries: tuple[str, str]) -> dict[str, Symbol]:
    return {name: Symbol(text, tuple(axes.split())) for name, (text, axes) in entries.items()}


SYMBOLS = _symbols(
    # a row of a sequence and its feed-forward network
    x=("x", "D"),
    increment=("Δ", "D"),
    y=("y", "D"),
    W1=("W₁", "F D"),
    b1=("b₁", "F"),
    h=("h", "F"),
    a=("a", "F"),
    a_dropped=("Dropout(a)", "F"),
    W2=("W₂", "D F"),
    b2=("b₂", "D"),
    z=("z", "D"),
    # the gated feed-forward network
    W_gate=("W_gate", "F D"),
    W_up=("W_up", "F D"),
    W_down=("W_down", "D F"),
    gate=("g", "F"),
    silu=("SiLU(g)", "F"),
    up=("u", "F"),
    gated=("SiLU(g) ⊙ u", "F"),
    b_gate=("b_gate", "F"),
    b_up=("b_up", "F"),
    b_down=("b_down", "D"),
    # the norms
    gamma=("γ", "D"),
    beta=("β", "D"),
    eps=("ε", ""),
    mean=("μ", "1"),
    centred=("d", "D"),
    squares=("d²", "D"),
    variance=("σ²", "1"),
    std=("s", "1"),
    normed=("x̂", "D"),
    ln=("LN", "D"),
    x_squares=("x²", "D"),
    mean_square=("m", "1"),
    rms=("rms", "1"),
    rms_normed=("x̂", "D"),
    rmsnorm=("RMSNorm", "D"),
)
