"""Each wrong network is wrong in the way that is told of it, and agrees with the right one where it hides."""

import torch

from oneblock.ffn import swiglu
from oneblock.mutants import networks
from oneblock.mutants.plain import Plain

N, L, D, F = 2, 5, 21, 11


def test_a_convolution_reads_the_neighbours_of_a_row(fixed, alike):
    wrong, _ = alike(networks.ConvolutionOverTokens, Plain)
    x, other = fixed(N, L, D), fixed(N, L, D)
    other[:, 2] = fixed(D, seed=1)
    moved = (wrong.process(x) - wrong.process(other)).abs().amax((0, 2)) > 1e-6
    assert moved.tolist() == [False, True, True, True, False]


def test_a_convolution_hides_where_its_outer_taps_are_zero(fixed, alike):
    wrong, right = alike(networks.ConvolutionOverTokens, Plain)
    wrong.linear1.weight.data = torch.zeros(F, D, 3, dtype=torch.float64)
    wrong.linear1.weight.data[..., 1] = right.linear1.weight.data
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-12, rtol=0)


def test_channels_by_view_let_a_row_reach_the_network_of_all_rows(fixed, alike):
    wrong, _ = alike(networks.ChannelsByView, Plain)
    x, other = fixed(N, L, D), fixed(N, L, D)
    other[0, 2] = fixed(D, seed=1)
    moved = (wrong.process(x) - wrong.process(other)).abs().amax(2) > 1e-6
    assert moved.tolist() == [[True] * L, [False] * L]


def test_channels_by_view_read_a_row_at_steps_of_the_length_through_the_flattened_text(fixed, alike):
    wrong, right = alike(networks.ChannelsByView, Plain)
    x = fixed(N, L, D)
    rows = torch.stack([x.flatten(1)[:, start::L] for start in range(L)], dim=1)
    z = wrong.process(x).flatten(1)
    for start in range(L):
        torch.testing.assert_close(z[:, start::L], right.process(rows)[:, start], atol=1e-12, rtol=0)


def test_channels_by_view_hide_where_a_text_is_one_row(fixed, alike):
    wrong, right = alike(networks.ChannelsByView, Plain)
    torch.testing.assert_close(wrong(fixed(N, 1, D)), right(fixed(N, 1, D)), atol=1e-12, rtol=0)


def test_one_matrix_for_both_leaves_the_second_idle(fixed, alike):
    wrong, _ = alike(networks.OneMatrixForBoth, Plain)
    x = fixed(N, L, D)
    wrong(x).sum().backward()
    assert wrong.linear2.weight.grad is None and wrong.linear2.bias.grad is not None


def test_one_matrix_for_both_hides_where_the_second_is_the_first_turned_round(fixed, alike):
    wrong, right = alike(networks.OneMatrixForBoth, Plain)
    x = fixed(N, L, D)
    assert (wrong(x) - right(x)).abs().max() > 0.1
    right.linear2.weight.data = right.linear1.weight.data.T
    torch.testing.assert_close(wrong(x), right(x), atol=1e-12, rtol=0)


def test_without_an_activation_the_network_is_one_affine_map(fixed, alike):
    wrong, _ = alike(networks.NoActivation, Plain)
    a, b = fixed(N, L, D), fixed(N, L, D, seed=1)
    zero = wrong.process(torch.zeros_like(a))
    due = wrong.process(a) + wrong.process(b) - zero
    torch.testing.assert_close(wrong.process(a + b), due, atol=1e-12, rtol=0)


def test_without_an_activation_it_hides_where_relu_has_nothing_to_cut(fixed, alike):
    wrong, right = alike(networks.NoActivation, Plain, activation="relu")
    for block in (wrong, right):
        block.linear1.bias.data.fill_(100.0)
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-12, rtol=0)


def test_the_gated_block_is_the_swiglu_of_the_library(fixed, alike):
    _, right = alike(networks.GateAndUpSwapped, networks.Gated)
    x = fixed(N, L, D)
    weights = (getattr(right.network, f"{name}_proj").weight for name in ("gate", "up", "down"))
    torch.testing.assert_close(right.process(x), swiglu(x, *weights), atol=1e-12, rtol=0)


def test_gate_and_up_swapped_is_the_right_block_with_the_weights_exchanged(fixed, alike):
    wrong, right = alike(networks.GateAndUpSwapped, networks.Gated)
    x, network = fixed(N, L, D), right.network
    assert (wrong(x) - right(x)).abs().max() > 0.1
    network.gate_proj.weight, network.up_proj.weight = network.up_proj.weight, network.gate_proj.weight
    torch.testing.assert_close(wrong(x), right(x), atol=1e-12, rtol=0)


def test_gate_and_up_swapped_hides_where_both_are_one(fixed, alike):
    wrong, right = alike(networks.GateAndUpSwapped, networks.Gated)
    for block in (wrong, right):
        block.network.up_proj.weight = block.network.gate_proj.weight
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-12, rtol=0)
