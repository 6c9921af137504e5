"""One key of letters: what every named tensor is called and which axes it has.

Axes, everywhere in the book: ``N`` batch, ``L`` sequence length, ``D`` model width, ``F`` FFN width,
``H`` heads, ``E = D/H`` the width of one. ``1`` is an axis that a reduction kept. ``J`` is the axis of the
positions that are read, where ``L`` is that of those that read: as long as ``L``, and written so.
"""

from typing import NamedTuple


class Symbol(NamedTuple):
    """How a tensor is written, and the axes it ends with."""

    text: str
    axes: tuple[str, ...]

    @property
    def leading(self) -> tuple[str, ...]:
        """The axes that may stand in front: both, or the last one, or neither; none where ``N`` is one of its own."""
        if "N" in self.axes:
            return ()
        return ("N",) if {"L", "J"} & set(self.axes) else ("N", "L")


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
    # attention
    W_Q=("W_Q", "H E D"),
    W_K=("W_K", "H E D"),
    W_V=("W_V", "H E D"),
    W_O=("W_O", "D D"),
    b_Q=("b_Q", "H E"),
    b_K=("b_K", "H E"),
    b_V=("b_V", "H E"),
    b_O=("b_O", "D"),
    q=("q", "H L E"),
    k=("k", "H J E"),
    v=("v", "H J E"),
    valid_tokens=("valid", "J"),
    may_read=("may read", "L J"),
    scores=("scores", "H L J"),
    masked_scores=("masked", "H L J"),
    weights=("α", "H L J"),
    weights_dropped=("Dropout(α)", "H L J"),
    mixed=("mix", "H L E"),
    joined=("joined", "D"),
    attended=("attended", "D"),
    # what dropout leaves of a branch's output
    attended_dropped=("Dropout(attended)", "D"),
    z_dropped=("Dropout(z)", "D"),
    # the mean of a text's real rows
    rows=("rows", "J D"),
    token_weights=("w", "J 1"),
    kept=("kept", "J D"),
    total=("sum", "N D"),
    count=("count", "N 1"),
    pooled=("pooled", "N D"),
    # the stops of a tour through a block
    X=("X", "D"),
    X_normed=("LN₁(X)", "D"),
    A=("A", "D"),
    U=("U", "D"),
    Z=("Z", "D"),
    Y=("Y", "D"),
    # from ids to a class
    token_ids=("ids", "L"),
    P=("P", "L D"),
    embedded=("e", "D"),
    Y_block=("Y", "D"),
    Y_normed=("Ŷ", "D"),
    pooled_row=("pooled", "N D"),
    W_C=("W_C", "C D"),
    b_C=("b_C", "C"),
    logits=("logits", "N C"),
    probabilities=("p", "N C"),
)
