"""The feed-forward network of a block: the same small network at every position, none reads another."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from oneblock.activations import Activation, activation_named
from oneblock.errors import ArgumentError, Described, check_dtype, check_flag, check_probability, check_size, check_tensor
from oneblock.notation import SYMBOLS
from oneblock.trace import tap, written_out

OUT_IN = "a weight is [out, in], as nn.Linear stores it"
LAST = "the last axis holds the features"


def ffn(
    x: Float[Tensor, "*N D"],
    W1: Float[Tensor, "F D"],
    b1: Float[Tensor, " F"] | None,
    W2: Float[Tensor, "D F"],
    b2: Float[Tensor, " D"] | None,
    activation: Activation = "relu",
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "*N D"]:
    """``z = W₂ φ(W₁x + b₁) + b₂`` at every position.

    Args:
        x: ``[..., D]``.
        W1, b1: ``[F, D]`` and ``[F]``; ``b1=None`` means no bias.
        W2, b2: ``[D, F]`` and ``[D]``; ``b2=None`` means no bias.
        activation: φ, by its name in ``oneblock.activations.ACTIVATIONS`` or as a callable.
        dropout: acts on ``φ(h)`` if given.
    Returns:
        ``[..., D]``.
    Raises:
        ArgumentError: naming the argument, for a tensor that is not floating or whose sizes do not fit, an
            empty axis, an activation that does not exist or does not give one number for each of ``h``.
    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.3, arXiv:1706.03762.
    """
    check_tensor("x", x, "... D")
    check_tensor("W1", W1, "F D", OUT_IN, D=x.shape[-1])
    check_tensor("W2", W2, "D F", OUT_IN, D=x.shape[-1], F=W1.shape[0])
    phi = activation_named(activation)
    h = _linear("h", x=x, W1=W1, b1=b1)
    a = tap("a", _activated(phi, h), "φ({h})", "φ({h[f]})", h=h)
    if dropout is not None:
        a = tap("a_dropped", dropout(a), "Dropout({a})", a=a)
    return _linear("z", a=a, W2=W2, b2=b2)


def swiglu(
    x: Float[Tensor, "*N D"],
    W_gate: Float[Tensor, "F D"],
    W_up: Float[Tensor, "F D"],
    W_down: Float[Tensor, "D F"],
    b_gate: Float[Tensor, " F"] | None = None,
    b_up: Float[Tensor, " F"] | None = None,
    b_down: Float[Tensor, " D"] | None = None,
) -> Float[Tensor, "*N D"]:
    """``z = W_down (SiLU(W_gate x) ⊙ W_up x)``: one branch lets each number of the other through, or not.

    The product is taken number by number; no position reads another.

    Args:
        x: ``[..., D]``.
        W_gate, W_up: ``[F, D]``; W_down: ``[D, F]``.
        b_gate, b_up: ``[F]``; b_down: ``[D]``; ``None`` means no bias.
    Returns:
        ``[..., D]``.
    Raises:
        ArgumentError: naming the argument, for a tensor that is not floating or whose sizes do not fit, or an
            empty axis.
    Source: Shazeer, *GLU Variants Improve Transformer*, 2020, arXiv:2002.05202.
    """
    check_tensor("x", x, "... D")
    check_tensor("W_gate", W_gate, "F D", OUT_IN, D=x.shape[-1])
    check_tensor("W_up", W_up, "F D", OUT_IN, D=x.shape[-1], F=W_gate.shape[0])
    check_tensor("W_down", W_down, "D F", OUT_IN, D=x.shape[-1], F=W_gate.shape[0])
    gate = _linear("gate", x=x, W_gate=W_gate, b_gate=b_gate)
    opened = tap("silu", activation_named("silu")(gate), "SiLU({gate})", "{gate[f]}·sigmoid({gate[f]})", gate=gate)
    up = _linear("up", x=x, W_up=W_up, b_up=b_up)
    gated = tap("gated", opened * up, "{silu} ⊙ {up}", "{silu[f]}·{up[f]}", silu=opened, up=up)
    return _linear("z", gated=gated, W_down=W_down, b_down=b_down)


class FFN(nn.Module):
    """:func:`ffn` with its parameters learned, and dropout on ``φ(h)`` while training.

    ``linear1`` holds W₁ and b₁, ``linear2`` W₂ and b₂: the names of ``torch.nn.TransformerEncoderLayer``.
    """

    def __init__(self, D: int, F: int, activation: Activation = "relu", bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        check_size("D", D)
        check_size("F", F)
        check_flag("bias", bias)
        check_probability("dropout", dropout)
        activation_named(activation)
        self.activation = activation
        self.linear1 = nn.Linear(D, F, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(F, D, bias=bias)

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        check_tensor("x", x, "... D", LAST, D=self.linear1.in_features)
        first, second = self.linear1, self.linear2
        dropout = self.dropout if self.dropout.training and self.dropout.p else None
        return ffn(x, first.weight, first.bias, second.weight, second.bias, self.activation, dropout)

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class SwiGLU(nn.Module):
    """:func:`swiglu` with its parameters learned.

    ``gate_proj``, ``up_proj`` and ``down_proj`` are the names of ``LlamaMLP`` in Hugging Face transformers.
    """

    def __init__(self, D: int, F: int, bias: bool = False) -> None:
        super().__init__()
        check_size("D", D)
        check_size("F", F)
        check_flag("bias", bias)
        self.gate_proj = nn.Linear(D, F, bias=bias)
        self.up_proj = nn.Linear(D, F, bias=bias)
        self.down_proj = nn.Linear(F, D, bias=bias)

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        check_tensor("x", x, "... D", LAST, D=self.gate_proj.in_features)
        gate, up, down = self.gate_proj, self.up_proj, self.down_proj
        return swiglu(x, gate.weight, up.weight, down.weight, gate.bias, up.bias, down.bias)


def matched_width(F: int) -> int:
    """The width at which a gated network learns about as many numbers as a plain one of width ``F``: ``2F/3``.

    Three weights of width 2F/3 against two of width F; biases apart, the counts differ by at most D, since
    2F/3 is rounded to the nearest whole number.

    Raises:
        ArgumentError: ``F`` is not a whole number ≥ 1.
    Source: Shazeer, *GLU Variants Improve Transformer*, 2020, section 3, arXiv:2002.05202.
    """
    check_size("F", F)
    return round(2 * F / 3)


def _activated(phi: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """``φ(h)``; refuses what else a callable may give: torch would stretch it, or turn it down without a name."""
    a = phi(h)
    if not isinstance(a, Tensor) or a.shape != h.shape:
        due = f"a callable to floating {list(h.shape)}, the shape of h"
        came = a if isinstance(a, Tensor) else Described(f"a {type(a).__name__}")
        raise ArgumentError("activation", due, came, "it acts on each number alone; a class such as nn.GELU needs its ()")
    check_dtype("activation", a, h, "h", "it gives numbers of the dtype it is given")
    return a


def _linear(name: str, **reads: Tensor | None) -> Tensor:
    """The step ``W x + b`` of a row, a weight and a bias, which are read in this order."""
    source, weight, bias = reads
    x, W, b = reads.values()
    check_dtype(weight, W, x)
    if b is not None:
        check_tensor(bias, b, SYMBOLS[bias].axes[0], **{SYMBOLS[bias].axes[0]: W.shape[0]})
        check_dtype(bias, b, x)
    if not written_out():
        return linear(x, W, b)
    out, summed = (axis.lower() for axis in SYMBOLS[weight].axes)
    row = f"({{{source}}})" if "⊙" in SYMBOLS[source].text else f"{{{source}}}"
    formula = f"{{{weight}}} {row}"
    worked = f"Σ{summed}⟨{{{weight}[{out},{summed}]}}·{{{source}[{summed}]}}⟩"
    if b is None:
        del reads[bias]
    else:
        formula, worked = f"{formula} + {{{bias}}}", f"{worked} + {{{bias}[{out}]}}"
    return tap(name, linear(x, W, b), formula, worked, **reads)
