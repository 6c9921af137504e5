"""The decoder block of a Transformer with two sides: it reads its own past, then what an encoder has made."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from oneblock.activations import Activation
from oneblock.attention import MultiHeadAttention
from oneblock.blocks import first_sum, second_sum
from oneblock.errors import check_finite, check_tensor
from oneblock.masks import check_valid_tokens
from oneblock.neighbours.causal import CausalBlock
from oneblock.neighbours.reading import KeysValues, keys_values, read
from oneblock.norms import LayerNorm
from oneblock.residual import residual
from oneblock.trace import scope

third_sum = scope("sum3")(residual)
FROM_MEMORY = "the memory is an encoder's output for the same batch, of the block's width"


class DecoderBlock(CausalBlock):
    """``U₁ = X + MHA(LN₁(X))`` causal, ``U₂ = U₁ + MHA(LN₂(U₁), M)``, ``Y = U₂ + FFN(LN₃(U₂))``, and dropout.

    In the second sum the queries come from U₁, keys and values from the memory M, which no norm of this block touches.
    Parameters have the names of ``torch.nn.TransformerDecoderLayer``.

    Args:
        D, H, F, options: as for :class:`oneblock.blocks.PreNorm`; both attentions have H heads.
    Called with:
        x: ``[N, L, D]``; memory: ``[N, J, D]``, of a length of its own.
        valid_tokens: ``[N, L]``, and valid_memory: ``[N, J]``, bool; no position reads one that is ``False``.
    Raises:
        ArgumentError: naming the argument that breaks its contract; also where ``x`` or ``memory`` is not finite.
    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.1, arXiv:1706.03762, there in the Post-LN order;
        ``torch.nn.TransformerDecoderLayer(norm_first=True, batch_first=True)``.
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
        super().__init__(D, H, F, activation, dropout, bias, eps)
        self.multihead_attn = MultiHeadAttention(D, H, bias, dropout)
        self.norm3 = LayerNorm(D, eps, bias=bias)
        self.dropout_crossed = nn.Dropout(dropout)

    @scope("norm3")
    def third_norm(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.norm3(x)

    def hand_over(self, memory: Float[Tensor, "N J D"]) -> KeysValues:
        """What the memory gives to every position and at every step: it is computed once."""
        check_tensor("memory", memory, "N J D", FROM_MEMORY, D=self.D)
        check_finite("memory", memory, "every position reads it")
        return keys_values(self.multihead_attn, memory)

    def cross(
        self, x: Float[Tensor, "N L D"], handed: KeysValues, valid_memory: Bool[Tensor, "N J"] | None
    ) -> Float[Tensor, "N L D"]:
        """``Dropout(MHA(x, M))``: what each position reads from the memory."""
        return self.dropout_crossed(read(self.multihead_attn, x, handed, valid_memory))

    def forward(
        self,
        x: Float[Tensor, "N L D"],
        memory: Float[Tensor, "N J D"],
        valid_tokens: Bool[Tensor, "N L"] | None = None,
        valid_memory: Bool[Tensor, "N J"] | None = None,
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        handed = self._memory_of(x, memory, valid_memory)
        u1 = first_sum(x, self.attend(self.first_norm(x), valid_tokens))
        u2 = second_sum(u1, self.cross(self.second_norm(u1), handed, valid_memory))
        return third_sum(u2, self.process(self.third_norm(u2)))

    def next(
        self,
        x: Float[Tensor, "N 1 D"],
        handed: KeysValues,
        past: KeysValues | None = None,
        valid_memory: Bool[Tensor, "N J"] | None = None,
    ) -> tuple[Float[Tensor, "N 1 D"], KeysValues]:
        """One more position, as :meth:`CausalBlock.next`; ``handed`` is what :meth:`hand_over` made of the memory."""
        self.enter(x)
        attended, past = self._read_next(self.first_norm(x), past)
        u1 = first_sum(x, self.dropout_attended(attended))
        u2 = second_sum(u1, self.cross(self.second_norm(u1), handed, valid_memory))
        return third_sum(u2, self.process(self.third_norm(u2))), past

    def _memory_of(self, x: Tensor, memory: Tensor, valid_memory: Tensor | None) -> KeysValues:
        check_tensor("memory", memory, "N J D", FROM_MEMORY, N=len(x), D=self.D)
        if valid_memory is not None:
            check_valid_tokens(valid_memory, memory, "valid_memory")
        return self.hand_over(memory)
