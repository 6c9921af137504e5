import math
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn.functional import cosine_similarity, log_softmax

from oneblock.depth import LOSSES, TEXT, TOKEN, Depth, Sizes, alike, measure, slope, spread, summarise, task
from oneblock.errors import ArgumentError
from oneblock.jacobians import layer_norm_jacobian
from oneblock.stacks import INITS, scale_branches, stack

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
SIZES = Sizes(N=2, L=3, D=10, H=5, F=7, C=11)
K, SEED = 3, 13


@pytest.fixture
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def official(structure, init, scale):
    """The same stack of PyTorch's own layers, its norms and sums seen through hooks."""
    torch.manual_seed(SEED)
    ours = stack(structure, K, SIZES.D, SIZES.H, SIZES.F)
    INITS[init](ours)
    scale_branches(ours, scale)
    order = {"dropout": 0.0, "batch_first": True, "norm_first": "Pre" in structure}
    layers = [nn.TransformerEncoderLayer(SIZES.D, SIZES.H, SIZES.F, **order) for _ in range(K)]
    for layer, block in zip(layers, ours.blocks, strict=True):
        layer.load_state_dict(block.state_dict())
    return layers, nn.LayerNorm(SIZES.D) if structure == "Pre-LN" else nn.Identity()


def forward(layers, final, loss):
    """The stream, the branches with what they are added to, and the loss, written out in numbers."""
    given = task(SEED, SIZES)
    stream, branches = [given.x.clone().requires_grad_()], []
    for layer in layers:
        seen = {}
        layer.self_attn.register_forward_hook(lambda *a, seen=seen: seen.update(attention=a[2][0]))
        layer.linear2.register_forward_hook(lambda *a, seen=seen: seen.update(ffn=a[2]))
        x = stream[-1]
        stream.append(layer(x))
        middle = x + seen["attention"] if layer.norm_first else layer.norm1(x + seen["attention"])
        branches.append([(seen["attention"], x), (seen["ffn"], middle)])
    logits = final(stream[-1]) @ given.head.mT
    texts = [(logits[n].mean(0), given.classes[n, 0]) for n in range(SIZES.N)]
    tokens = [(logits[n, i], given.classes[n, i]) for n in range(SIZES.N) for i in range(SIZES.L)]
    pairs = {TEXT: texts, TOKEN: tokens}[loss]
    return stream, branches, -sum(log_softmax(row, 0)[c] for row, c in pairs) / len(pairs)


def norms(tensors):
    return [math.sqrt(sum(number**2 for number in tensor.flatten().tolist())) for tensor in tensors]


@pytest.mark.parametrize(
    ("structure", "init", "loss", "scale"),
    [
        ("Pre-LN", "PyTorch's default", TEXT, 1.0),
        ("Pre-LN", "Xavier", TOKEN, 0.7),
        ("Pre-LN, no final LN", "branches / √(2K)", TOKEN, 1.0),
        ("Post-LN", "Xavier", TEXT, 1.0),
        ("Post-LN", "PyTorch's default", TOKEN, 1.9),
    ],
)
def test_a_run_measures_what_pytorchs_layers_show(in_float64, structure, init, loss, scale):
    run = measure(structure, K, init, loss, SEED, scale, SIZES)
    layers, final = official(structure, init, scale)
    stream, branches, value = forward(layers, final, loss)
    gradients = torch.autograd.grad(value, [*stream, *(layer.linear2.weight for layer in layers)])
    ratios = [[norms([b])[0] / norms([x])[0] for b, x in both] for both in branches]
    assert run.loss == pytest.approx(value.item(), rel=1e-12)
    assert run.gradient == pytest.approx(norms(gradients[: K + 1]), rel=1e-10)
    assert run.ffn_gradient == pytest.approx(norms(gradients[K + 1 :]), rel=1e-10)
    assert run.rms == pytest.approx([n / math.sqrt(2 * 3 * 10) for n in norms(stream)], rel=1e-12)
    for k, pair in enumerate(ratios):
        assert (run.attention_ratio[k], run.ffn_ratio[k]) == pytest.approx(pair, rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("structure", ["Pre-LN", "Pre-LN, no final LN"])
def test_past_the_branches_a_pre_ln_stack_hands_its_gradient_on_unchanged(structure, loss):
    run = measure(structure, K, "Xavier", loss, SEED, sizes=SIZES)
    assert run.skip == pytest.approx([run.gradient[-1]] * (K + 1), rel=1e-12)
    assert run.gradient[0] != pytest.approx(run.skip[0], rel=0.1)


def test_past_the_branches_a_post_ln_stack_hands_it_through_each_norm(in_float64):
    run = measure("Post-LN", K, "Xavier", TOKEN, SEED, sizes=SIZES)
    layers, final = official("Post-LN", "Xavier", 1.0)
    sums = {}
    for k, layer in enumerate(layers):
        for place, norm in enumerate((layer.norm1, layer.norm2)):
            norm.register_forward_pre_hook(lambda _, args, key=(k, place): sums.setdefault(key, args[0].detach()))
    stream, _, value = forward(layers, final, TOKEN)
    g = torch.autograd.grad(value, stream[-1])[0]
    due = [norms([g])[0]]
    for k, place in product(reversed(range(K)), (1, 0)):
        rows = zip(g.flatten(0, 1), sums[k, place].flatten(0, 1), strict=True)
        g = torch.stack([row @ layer_norm_jacobian(at) for row, at in rows]).view_as(g)
        due += norms([g]) if place == 0 else []
    assert run.skip == pytest.approx(due[::-1], rel=1e-10)


def test_the_third_structure_keeps_one_norm_on_the_path():
    third, post = (measure(s, K, "Xavier", TEXT, SEED, sizes=SIZES) for s in ("second norm after the sum", "Post-LN"))
    assert third.skip[-1] > third.skip[0] and third.rms[1:] == pytest.approx([1] * K, abs=1e-4)
    assert third.gradient != pytest.approx(post.gradient, rel=1e-3)


def test_with_silent_branches_depth_changes_nothing():
    run = measure("Pre-LN", K, seed=SEED, scale=0.0, sizes=SIZES)
    for curve in (run.gradient, run.skip, run.rms, run.alike):
        assert curve == pytest.approx([curve[0]] * (K + 1), rel=1e-12)
    assert run.attention_ratio == run.ffn_ratio == [0] * K


def test_alike_is_the_mean_cosine_of_all_pairs(fixed):
    x = fixed(2, 3, 5)
    pairs = [(n, i, j) for n, i, j in product(range(2), range(3), range(3)) if i != j]
    cosines = [cosine_similarity(x[n, i], x[n, j], dim=0) for n, i, j in pairs]
    assert alike(x) == pytest.approx(sum(cosines).item() / 12, rel=1e-12)
    assert alike(x[:, :1] * torch.tensor([[[1.0], [2.0], [5.0]]])) == pytest.approx(1, rel=1e-12)


def test_alike_takes_texts_only(fixed):
    with pytest.raises(ArgumentError, match=r"^x must be floating \[N, L, D\]; got float64 \[3, 5\]"):
        alike(fixed(3, 5))


def test_a_task_is_fixed_by_its_seed_and_scaled_as_said():
    big = Sizes(N=31, L=37, D=41, C=43)
    one, same, other = task(3, big), task(3, big), task(4, big)
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True)) and not torch.equal(one.x, other.x)
    assert one.x.square().mean().item() == pytest.approx(1, rel=0.02)
    assert one.head.square().mean().item() == pytest.approx(1 / 41, rel=0.1)
    assert one.classes.unique().tolist() == list(range(43))
    assert (one.x.shape, one.head.shape, one.classes.shape) == ((31, 37, 41), (43, 41), (31, 37))


def test_a_seed_fixes_a_run_and_torchs_own_seed_and_dtype_stay():
    before = torch.random.get_rng_state()
    one, same, other = (measure("Post-LN", 2, seed=seed, sizes=SIZES) for seed in (5, 5, 6))
    assert one == same and one != other
    assert torch.equal(before, torch.random.get_rng_state()) and torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(("K", "at"), [(1, [0, 1]), (3, [0, 1, 2, 3]), (8, [0, 2, 4, 6, 8])])
def test_a_summary_gives_smallest_median_and_largest_at_its_boundaries(K, at):
    seeds = (5, 11, 2)
    summary = summarise("Post-LN", K, "Xavier", TOKEN, seeds, SIZES)
    runs = [measure("Post-LN", K, "Xavier", TOKEN, seed, sizes=SIZES) for seed in seeds]
    assert summary[:6] == ("Post-LN", "Xavier", TOKEN, K, 3, at)
    assert list(summary.curves) == list(Depth._fields[:-1])
    for name, curve in summary.curves.items():
        over_blocks = name in ("attention_ratio", "ffn_ratio", "ffn_gradient")
        places = [k - 1 for k in at[1:]] if over_blocks else at
        assert curve == [sorted(getattr(run, name)[k] for run in runs) for k in places]


def test_a_spread_is_smallest_median_largest():
    assert spread([5.0, 1.0, 2.0]) == [1, 2, 5] and spread([4.0, 1.0, 2.0, 8.0]) == [1, 3, 8]


@pytest.mark.parametrize("power", [-0.5, 0.0, 1.3])
def test_a_slope_is_the_power_of_the_depth(power):
    depths = [1, 2, 4, 8, 64]
    assert slope(depths, [3 * K**power for K in depths]) == pytest.approx(power, abs=1e-12)


@pytest.mark.parametrize(("argument", "name"), [("structure", "None-LN"), ("init", "xavier"), ("loss", "sum")])
def test_unknown_names_are_refused(argument, name):
    with pytest.raises(ArgumentError, match=rf"^{argument} must be one of .*; got '{name}'"):
        measure(**{"structure": "Pre-LN", "K": 1, argument: name})


def test_a_negative_scale_is_refused():
    with pytest.raises(ArgumentError, match=r"^factor must be a finite number ≥ 0; got -1"):
        measure("Pre-LN", 1, scale=-1, sizes=SIZES)
