"""One Transformer block, in the two orders of norm and sum. The equations are the two ``forward`` methods."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from oneblock.activations import Activation, activation_named
from oneblock.attention import MultiHeadAttention
from oneblock.errors import check_finite, check_size, check_tensor
from oneblock.ffn import ffn
from oneblock.norms import LayerNorm
from oneblock.residual import residual
from oneblock.trace import given, scope, tap

first_sum = scope("sum1")(residual)
second_sum = scope("sum2")(residual)


class Parts(nn.Module):
    """What a block is made of, in whatever order: two norms, attention, a feed-forward network.

    Parameters have the names of ``torch.nn.TransformerEncoderLayer`` and, for one seed, its first values.
    """

    def __init__(
        self,
        D: int,
        H: int,
        F: int,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        bias: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        check_size("F", F)
        activation_named(activation)
        self.D, self.activation = D, activation
        self.self_attn = MultiHeadAttention(D, H, bias, dropout)
        self.linear1 = nn.Linear(D, F, bias=bias)
        self.linear2 = nn.Linear(F, D, bias=bias)
        self.norm1 = LayerNorm(D, eps, bias=bias)
        self.norm2 = LayerNorm(D, eps, bias=bias)
        self.dropout_hidden, self.dropout_attended, self.dropout_z = (nn.Dropout(dropout) for _ in range(3))

    def enter(self, x: Float[Tensor, "N L D"]) -> None:
        one_sequence = isinstance(x, Tensor) and x.ndim == 2
        hint = "add a batch axis with x[None]" if one_sequence else "the last axis holds the features"
        check_tensor("x", x, "N L D", hint, D=self.D)
        check_finite("x", x, "the scores would carry it to every position, and 0 · NaN is NaN: a mask does not stop it")
        given("x", x)

    @scope("norm1")
    def first_norm(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.norm1(x)

    @scope("norm2")
    def second_norm(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.norm2(x)

    def attend(self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None) -> Float[Tensor, "N L D"]:
        """``Dropout(MHA(x))``: what a position reads from the others."""
        attended = self.self_attn(x, valid_tokens, self.may_read(x))
        if not self._drops(self.dropout_attended):
            return attended
        return tap("attended_dropped", self.dropout_attended(attended), "Dropout({attended})", attended=attended)

    def may_read(self, x: Float[Tensor, "N L D"]) -> Bool[Tensor, "L L"] | None:
        """Which rows a row may read, padding apart; ``None``: all. A block with a rule of its own overrides this."""
        return None

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        """``Dropout(FFN(x))``: what a position makes of what it has."""
        first, second = self.linear1, self.linear2
        dropout = self.dropout_hidden if self._drops(self.dropout_hidden) else None
        z = ffn(x, first.weight, first.bias, second.weight, second.bias, self.activation, dropout)
        return tap("z_dropped", self.dropout_z(z), "Dropout({z})", z=z) if self._drops(self.dropout_z) else z

    @staticmethod
    def _drops(dropout: nn.Dropout) -> bool:
        return dropout.training and dropout.p > 0

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class PreNorm(Parts):
    """``U = X + Dropout(MHA(LN₁(X)))``, ``Y = U + Dropout(FFN(LN₂(U)))``: a norm opens each branch.

    Args:
        D, H, F: model width, number of heads (a divisor of D), width inside the feed-forward network.
        activation: φ, by its name in ``oneblock.activations.ACTIVATIONS`` or as a callable.
        dropout: the rate at three sites: the attention weights, φ(h), and each branch's output.
        bias: whether projections and norms have one.
        eps: ε of both norms.
    Called with:
        x: ``[N, L, D]``.
        valid_tokens: ``[N, L]``, bool; no position reads one that is ``False``. Their own rows are computed too.
    Raises:
        ArgumentError: naming the argument that breaks its contract; also where ``x`` is not finite.
    Source: Xiong et al., *On Layer Normalization in the Transformer Architecture*, 2020, arXiv:2002.04745;
        ``torch.nn.TransformerEncoderLayer(norm_first=True, batch_first=True)``.
    """

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.attend(self.first_norm(x), valid_tokens))
        return second_sum(u, self.process(self.second_norm(u)))


class PostNorm(Parts):
    """``U = LN₁(X + Dropout(MHA(X)))``, ``Y = LN₂(U + Dropout(FFN(U)))``: a norm closes each sum.

    Arguments, parameters and errors are those of :class:`PreNorm`; a state dict fits both.

    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.1, arXiv:1706.03762;
        ``torch.nn.TransformerEncoderLayer(norm_first=False, batch_first=True)``.
    """

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = self.first_norm(first_sum(x, self.attend(x, valid_tokens)))
        return self.second_norm(second_sum(u, self.process(u)))
