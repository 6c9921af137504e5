"""Routing row by row, its limiting cases, its gradients, and what the load and its loss count."""

from math import exp

import pytest
import torch
from torch.nn.functional import gelu

from oneblock.dependency import reach
from oneblock.errors import ArgumentError, ShapeError
from oneblock.ffn import FFN
from oneblock.neighbours import MixtureBlock, MixtureOfExperts
from oneblock.trace import record

N, L, D, F, EXPERTS = 2, 11, 7, 5, 3


@pytest.fixture
def mixture(filled):
    return filled(MixtureOfExperts(D, F, EXPERTS, active=2))


def by_hand(mixture, row):
    """One row through the experts with the highest scores, found by sorting, the shares by ``math.exp``."""
    scores = (mixture.router.weight @ row).tolist()
    best = sorted(range(len(scores)), key=lambda e: -scores[e])[: mixture.active]
    total = sum(exp(scores[e]) for e in best)

    def network(e):
        first, second = mixture.experts[e].linear1, mixture.experts[e].linear2
        return second.weight @ gelu(first.weight @ row + first.bias) + second.bias

    return sum(exp(scores[e]) / total * network(e) for e in best), best


@pytest.mark.parametrize("active", [1, 2, 3])
def test_each_row_alone_gets_the_weighted_sum_of_its_experts(fixed, run, filled, active):
    mixture, x = filled(MixtureOfExperts(D, F, EXPERTS, active)), fixed(N, L, D)
    z = run(mixture, x)
    for n in range(N):
        for i in range(L):
            torch.testing.assert_close(z[n, i], by_hand(mixture, x[n, i])[0], atol=1e-12, rtol=1e-12)
            torch.testing.assert_close(z[n, i], mixture(x[n, i]), atol=1e-12, rtol=1e-12)
    assert len({tuple(by_hand(mixture, row)[1]) for row in x.flatten(0, 1)}) > 1 or active == EXPERTS


def test_with_all_experts_active_it_is_a_softmax_weighted_sum(fixed, filled):
    mixture, x = filled(MixtureOfExperts(D, F, EXPERTS, EXPERTS)), fixed(N, L, D)
    shares = torch.einsum("ed,nld->nle", mixture.router.weight, x).softmax(-1)
    due = torch.einsum("nle,enld->nld", shares, torch.stack([expert(x) for expert in mixture.experts]))
    torch.testing.assert_close(mixture(x), due, atol=1e-12, rtol=1e-12)


def test_one_expert_is_a_feed_forward_network(fixed, filled):
    mixture, x = filled(MixtureOfExperts(D, F, 1, 1)), fixed(N, L, D)
    plain = FFN(D, F, "gelu").double()
    plain.load_state_dict(mixture.experts[0].state_dict())
    torch.testing.assert_close(mixture(x), plain(x), atol=1e-12, rtol=1e-12)


def test_equal_experts_make_the_routing_invisible(fixed, mixture):
    for expert in mixture.experts:
        expert.load_state_dict(mixture.experts[0].state_dict())
    x = fixed(N, L, D)
    torch.testing.assert_close(mixture(x), mixture.experts[0](x), atol=1e-12, rtol=1e-12)


def test_the_gradient_is_that_of_finite_differences(fixed, mixture):
    x, names = fixed(3, D).requires_grad_(), [name for name, _ in mixture.named_parameters()]

    def z(x, *parameters):
        return torch.func.functional_call(mixture, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(z, (x, *mixture.parameters()))


@pytest.mark.parametrize("active, learns", [(1, False), (2, True), (3, True)])
def test_the_router_learns_from_the_output_only_where_two_or_more_are_active(fixed, filled, active, learns):
    mixture = filled(MixtureOfExperts(D, F, EXPERTS, active))
    (mixture(fixed(N, L, D)) * fixed(N, L, D, seed=3)).sum().backward()
    assert bool(mixture.router.weight.grad.abs().max() > 1e-6) == learns
    mixture.zero_grad()
    mixture.imbalance(fixed(N, L, D)).backward()
    assert bool(mixture.router.weight.grad.abs().max() > 1e-6) == (active < EXPERTS)  # where all are sent all, f is even


def test_the_load_counts_every_row_as_often_as_it_is_sent(fixed, mixture):
    x = fixed(N, L, D)
    load = mixture.load(x)
    assert load.sum() == N * L * 2
    due = [sum(e in by_hand(mixture, row)[1] for row in x.flatten(0, 1)) for e in range(EXPERTS)]
    assert load.tolist() == due and len(set(due)) > 1


def test_the_imbalance_is_one_where_shares_are_even_and_more_where_few_get_all(fixed, mixture):
    x = fixed(N, L, D)
    f = mixture.load(x).double() / (N * L * 2)
    P = torch.stack([torch.einsum("ed,d->e", mixture.router.weight, row).softmax(0) for row in x.flatten(0, 1)]).mean(0)
    assert mixture.imbalance(x).item() == pytest.approx(EXPERTS * sum((f * P).tolist()), abs=1e-12)
    mixture.router.weight.data.zero_()
    assert mixture.imbalance(x).item() == pytest.approx(1, abs=1e-12)
    mixture.router.weight.data[:2] = 50
    assert mixture.imbalance(torch.ones(1, L, D).double()).item() == pytest.approx(EXPERTS / 2, abs=1e-12)


def test_no_position_of_the_network_reads_another_and_the_block_reads_all(fixed, filled, mixture):
    assert reach(mixture, fixed(N, 5, D)).crosses == ("features",)
    assert reach(filled(MixtureBlock(6, 2, F, EXPERTS)), fixed(N, 5, 6)).positions.all()


def test_the_block_with_one_expert_is_the_plain_one(fixed, run, filled):
    block = filled(MixtureBlock(6, 2, F, 1, 1))
    layer = torch.nn.TransformerEncoderLayer(6, 2, F, 0.0, "gelu", batch_first=True, norm_first=True, dtype=torch.float64)
    layer.load_state_dict({name.replace("network.experts.0.", ""): value for name, value in block.state_dict().items() if "router" not in name})
    valid_tokens = torch.arange(L) < torch.tensor([[4], [L]])
    came, due = run(block, fixed(N, L, 6), valid_tokens), layer(fixed(N, L, 6), src_key_padding_mask=~valid_tokens)
    torch.testing.assert_close(came[valid_tokens], due[valid_tokens], atol=1e-12, rtol=1e-12)


def test_a_trace_names_each_expert(fixed, mixture):
    assert {f"expert{e + 1}.z" for e in range(EXPERTS)} <= set(record(mixture, fixed(N, L, D)).names)


@pytest.mark.usefixtures("as_readers_run_it")
def test_broken_contracts_are_named(fixed, mixture):
    with pytest.raises(ArgumentError, match=r"^active must be at most experts = 3; got 4; a row chooses among those there are"):
        MixtureOfExperts(D, F, 3, 4)
    with pytest.raises(ArgumentError, match=r"^experts must be a whole number ≥ 1; got 0"):
        MixtureOfExperts(D, F, 0)
    with pytest.raises(ArgumentError, match=r"^active must be a whole number ≥ 1; got 0"):
        MixtureOfExperts(D, F, 3, 0)
    with pytest.raises(ShapeError, match=r"^x must be floating \[\.\.\., D\] = \[\.\.\., 7\]; got float64 \[2, 5\]; the last axis"):
        mixture(fixed(2, 5))
