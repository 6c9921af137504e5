"""Attention: each position reads the others, by weights that the rows themselves decide."""

from collections.abc import Callable
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from oneblock.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    check_device,
    check_dtype,
    check_flag,
    check_probability,
    check_size,
    check_tensor,
)
from oneblock.masks import check_valid_tokens
from oneblock.modes import values_can_be_read
from oneblock.precision import widened
from oneblock.trace import tap, written_out

ROW_READS_COLUMN = "True where row i may read column j"
SAME_SHAPE, SAME_DTYPE = "q, k and v have one shape", "q, k and v have one dtype"


def attention(
    q: Float[Tensor, "*N L E"],
    k: Float[Tensor, "*N L E"],
    v: Float[Tensor, "*N L E"],
    valid_tokens: Bool[Tensor, "N L"] | None = None,
    may_read: Bool[Tensor, "L L"] | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "*N L E"]:
    """``mix_i = Σ_j α_ij v_j`` with ``α = softmax(q kᵀ / √E)``: each row of α is a share of 1 over the positions.

    Half precision is computed in float32 and rounded once, as torch's kernel does: in float16 a score of 65520 is ∞.

    Args:
        q, k, v: ``[..., L, E]``, of one shape and, but under autocast, one dtype; with ``valid_tokens`` ``[N, H, L, E]``.
        valid_tokens: ``[N, L]``; no position reads one that is ``False``.
        may_read: ``[L, L]``; position i reads j only if ``may_read[i, j]``.
        dropout: acts on α if given.
    Returns:
        ``[..., L, E]``.
    Raises:
        ArgumentError: naming the argument, for a tensor that is not floating, shapes or dtypes that differ, a mask that
            is not bool or leaves a position nothing to read.
    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.1, arXiv:1706.03762.
    """
    check_tensor("q", q, "... L E")
    _check_like_q(q, k=k, v=v)
    if valid_tokens is not None:
        check_tensor("q", q, "N H L E", "with valid_tokens, q has the axes [N, H, L, E]")
        check_valid_tokens(valid_tokens, q[:, 0])
    E, worked = q.shape[-1], "(Σe⟨{q[h,e]}·{k[h,j,e]}⟩) / √#E"
    scores = tap("scores", widened(q) @ widened(k).mT / sqrt(E), "{q} {k}ᵀ / √E", worked, q=q, k=k)
    scores = _masked(q, scores, valid_tokens, may_read)
    worked = "exp({scores[h,j]}) / (Σj⟨exp({scores[h,j]})⟩)"
    weights = tap("weights", scores.softmax(-1), "softmax({scores})", worked, scores=scores)
    if dropout is not None:
        weights = tap("weights_dropped", dropout(weights), "Dropout({weights})", weights=weights)
    mixed = (weights @ widened(v)).to(v.dtype)
    return tap("mixed", mixed, "{weights} {v}", "Σj⟨{weights[h,j]}·{v[h,j,e]}⟩", weights=weights, v=v)


class MultiHeadAttention(nn.Module):
    """``attended = W_O [mix of head 1 … mix of head H] + b_O``: :func:`attention` in H heads of width E = D/H.

    The projections ``q = W_Q x + b_Q``, and likewise k and v, are stored below each other in ``in_proj_weight``
    ``[3D, D]``, ``W_O`` in ``out_proj``: names, order and first values of ``torch.nn.MultiheadAttention``, so that
    the two exchange state dicts and one seed gives both the same numbers.

    torch's fused kernel has no second derivative and none in forward mode. ``torch.func`` takes both, and so does
    ``torch.autograd`` inside ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.
    """

    def __init__(self, D: int, H: int, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        check_size("D", D)
        check_size("H", H)
        check_flag("bias", bias)
        check_probability("dropout", dropout)
        if D % H:
            fitting = ", ".join(str(n) for n in range(1, D + 1) if D % n == 0)
            raise ArgumentError("H", f"a divisor of D = {D}", H, f"each head takes D/H features; fitting are {fitting}")
        self.D, self.H = D, H
        self.out_proj = nn.Linear(D, D, bias=bias)
        self.in_proj_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(3 * D, D)))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * D)) if bias else None
        self.dropout = nn.Dropout(dropout)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        x: Float[Tensor, "*N L D"],
        valid_tokens: Bool[Tensor, "N L"] | None = None,
        may_read: Bool[Tensor, "L L"] | None = None,
    ) -> Float[Tensor, "*N L D"]:
        check_tensor("x", x, "... L D", "the last axis holds the features", D=self.D)
        if valid_tokens is not None:
            check_valid_tokens(valid_tokens, x)
        self._check_dtypes(x)
        if not written_out():
            return self.out_proj(self._mixed_by_kernel(x, valid_tokens, may_read))
        q, k, v = (self._project(letter, part, x) for part, letter in enumerate("QKV"))
        dropout = self.dropout if self.dropout.training and self.dropout.p else None
        mixed = attention(q, k, v, valid_tokens, may_read, dropout)
        joined = tap("joined", mixed.transpose(-3, -2).flatten(-2), "{mixed} of all heads", mixed=mixed)
        attended, reads = self.out_proj(joined), {"W_O": self.out_proj.weight, "joined": joined}
        if self.out_proj.bias is None:
            return tap("attended", attended, "{W_O} {joined}", **reads)
        return tap("attended", attended, "{W_O} {joined} + {b_O}", **reads, b_O=self.out_proj.bias)

    def _check_dtypes(self, x: Tensor) -> None:
        check_dtype("in_proj_weight", self.in_proj_weight, x)
        check_dtype("out_proj.weight", self.out_proj.weight, x)
        if self.in_proj_bias is not None:
            check_dtype("in_proj_bias", self.in_proj_bias, x)
            check_dtype("out_proj.bias", self.out_proj.bias, x)

    def _mixed_by_kernel(self, x: Tensor, valid_tokens: Tensor | None, may_read: Tensor | None) -> Tensor:
        """The mix of all heads, joined: one product for q, k and v, one kernel of torch for the attention."""
        q, k, v = linear(x, self.in_proj_weight, self.in_proj_bias).unflatten(-1, (3, self.H, -1)).unbind(-3)
        q, k, v = q.transpose(-3, -2), k.transpose(-3, -2), v.transpose(-3, -2)
        readable = None if valid_tokens is may_read is None else _readable(q, valid_tokens, may_read)
        dropout = self.dropout.p if self.dropout.training else 0.0
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=readable, dropout_p=dropout)
        return mixed.transpose(-3, -2).flatten(-2)

    def _project(self, letter: str, part: int, x: Tensor) -> Tensor:
        """q, k or v of every head, ``[..., H, L, E]``."""
        W, H = self.in_proj_weight.chunk(3)[part], self.H
        b = None if self.in_proj_bias is None else self.in_proj_bias.chunk(3)[part]
        value = linear(x, W, b).unflatten(-1, (H, -1)).transpose(-3, -2)
        reads = {f"W_{letter}": W.unflatten(0, (H, -1)), "x": x}
        formula, worked = f"{{W_{letter}}} {{x}}", f"Σd⟨{{W_{letter}[h,e,d]}}·{{x[d]}}⟩"
        if b is not None:
            reads[f"b_{letter}"] = b.unflatten(0, (H, -1))
            formula, worked = f"{formula} + {{b_{letter}}}", f"{worked} + {{b_{letter}[h,e]}}"
        return tap(letter.lower(), value, formula, worked if letter == "Q" else "", **reads)

    def extra_repr(self) -> str:
        return f"D={self.D}, H={self.H}"


def _check_like_q(q: Tensor, **others: Tensor) -> None:
    """Refuses what torch would stretch to the queries, or turn down without a name."""
    for name, value in others.items():
        check_tensor(name, value, "... L E", SAME_SHAPE)
        if value.shape != q.shape:
            raise ShapeError(name, f"floating [..., L, E] = {list(q.shape)}, the shape of q", value, SAME_SHAPE)
        check_dtype(name, value, q, "q", SAME_DTYPE)


def _masked(q: Tensor, scores: Tensor, valid_tokens: Tensor | None, may_read: Tensor | None) -> Tensor:
    """The scores, with −∞ where a position may not be read; softmax makes that a share of 0."""
    given = {"valid_tokens": valid_tokens, "may_read": may_read}
    reads = {name: mask for name, mask in given.items() if mask is not None}
    if not reads:
        return scores
    masked = scores.masked_fill(~_readable(q, valid_tokens, may_read), -torch.inf)
    formula = f"{{scores}} where {' and '.join(f'{{{name}}}' for name in reads)}, else −∞"
    return tap("masked_scores", masked, formula, scores=scores, **reads)


def _readable(q: Tensor, valid_tokens: Tensor | None, may_read: Tensor | None) -> Tensor:
    """Both masks in one: ``[N, 1, 1, L]``, ``[L, L]`` or ``[N, 1, L, L]``."""
    if may_read is None:
        return valid_tokens[:, None, None]
    L = q.shape[-2]
    due = f"bool [L, L] = {[L, L]}"
    if not isinstance(may_read, Tensor) or may_read.dtype != torch.bool:
        raise DtypeError("may_read", due, may_read, ROW_READS_COLUMN)
    if may_read.shape != (L, L):
        raise ShapeError("may_read", due, may_read, ROW_READS_COLUMN)
    check_device("may_read", may_read, q, "the rows")
    readable = may_read if valid_tokens is None else may_read & valid_tokens[:, None, None]
    if values_can_be_read(readable) and not readable.any(-1).all():
        due += " that leaves each position something to read"
        raise ArgumentError("may_read", due, may_read, "a position that may read nothing has no shares to give")
    return readable
