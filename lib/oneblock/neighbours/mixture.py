"""A mixture of experts: several feed-forward networks, of which each row is sent through a few."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from oneblock.attention import MultiHeadAttention
from oneblock.blocks import first_sum, second_sum
from oneblock.errors import ArgumentError, check_size, check_tensor
from oneblock.ffn import FFN
from oneblock.neighbours.frame import Frame
from oneblock.norms import LayerNorm
from oneblock.trace import scope


class MixtureOfExperts(nn.Module):
    """``z = Σ_{e chosen} g_e FFN_e(x)``, the ``active`` experts with the largest scores ``W_R x``; g is their softmax.

    Each row is sent alone: by its own numbers, whatever the others are. No expert has a limit, so no row is dropped.
    With ``active = 1`` the one share is 1 whatever the score, and no gradient reaches W_R from z.

    Args:
        D, F: model width, width inside each expert.
        experts: how many there are; active: how many of them a row is sent through.
    Called with:
        x: ``[..., D]``.
    Raises:
        ArgumentError: ``active`` is more than ``experts``, or another argument breaks its contract.
    Source: Shazeer et al., *Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer*, 2017,
        section 2.1, arXiv:1701.06538, there with noise on the scores.
    """

    def __init__(self, D: int, F: int, experts: int, active: int = 2) -> None:
        super().__init__()
        check_size("experts", experts)
        check_size("active", active)
        if active > experts:
            raise ArgumentError("active", f"at most experts = {experts}", active, "a row chooses among those there are")
        self.active = active
        self.router = nn.Linear(D, experts, bias=False)
        self.experts = nn.ModuleList(FFN(D, F, "gelu") for _ in range(experts))

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        shares, chosen = self.route(x)
        shares, chosen, rows = (one.reshape(-1, one.shape[-1]) for one in (shares, chosen, x))
        z = torch.zeros_like(rows)
        for e, expert in enumerate(self.experts):
            sent, rank = (chosen == e).nonzero(as_tuple=True)
            with scope(f"expert{e + 1}"):
                z = z.index_add(0, sent, shares[sent, rank, None] * expert(rows[sent]))
        return z.view(x.shape)

    def route(self, x: Float[Tensor, "*N D"]) -> tuple[Float[Tensor, "*N active"], Int[Tensor, "*N active"]]:
        """The shares ``g`` of the chosen experts of each row, largest first, and which these are."""
        check_tensor("x", x, "... D", "the last axis holds the features", D=self.router.in_features)
        scores, chosen = self.router(x).topk(self.active)
        return scores.softmax(-1), chosen

    def load(self, x: Float[Tensor, "*N D"]) -> Int[Tensor, " experts"]:
        """How many rows each expert is sent. The counts sum to rows · ``active``; hand over real rows: ``x[valid_tokens]``."""
        return self.route(x)[1].flatten().bincount(minlength=len(self.experts))

    def imbalance(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, ""]:
        """``experts · Σ_e f_e P_e``: f the shares of the load, P the mean over the rows of ``softmax(W_R x)``.

        1 where either is even, up to ``experts / active`` where the same few get all rows. A loss adds it, times a small
        factor; f has no gradient, P has.

        Source: Fedus, Zoph, Shazeer, *Switch Transformers*, 2021, section 2.2, arXiv:2101.03961, there with one active.
        """
        f = self.load(x).to(x.dtype)
        P = self.router(x).softmax(-1).reshape(-1, len(self.experts)).mean(0)
        return len(self.experts) * (f / f.sum() * P).sum()


class MixtureBlock(Frame):
    """``U = X + MHA(LN₁(X))``, ``Y = U + MoE(LN₂(U))``, with :class:`MixtureOfExperts` as the network.

    Args:
        D, H, F: model width, number of heads (a divisor of D), width inside each expert.
        experts, active: as for :class:`MixtureOfExperts`.
        eps: ε of both norms.
    Called with and raises: as :class:`oneblock.neighbours.AttentionOnly`.
    Source: Lepikhin et al., *GShard*, 2020, section 2.1, arXiv:2006.16668.
    """

    def __init__(self, D: int, H: int, F: int, experts: int, active: int = 2, eps: float = 1e-5) -> None:
        super().__init__(D)
        self.norm1, self.norm2 = LayerNorm(D, eps), LayerNorm(D, eps)
        self.self_attn = MultiHeadAttention(D, H)
        self.network = MixtureOfExperts(D, F, experts, active)

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.self_attn(self.first_norm(x), valid_tokens))
        return second_sum(u, self.network(self.second_norm(u)))
