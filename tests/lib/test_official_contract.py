"""What torch's layer promises and does, as seen in torch 2.13; chapter 8 tells the same.

A failure here says that torch has changed, not that our code broke: each message names the version and where to look.
"""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.fast_path import both_paths, fused

SEEN = "2.13"
N, L, D, H, F = 3, 5, 12, 2, 7
LENGTHS = torch.tensor([3, 5, 4])
PADDING = torch.arange(L) >= LENGTHS[:, None]
CAUSAL = torch.ones(L, L).triu(1).bool()
OTHER = CAUSAL.T.roll(-1, dims=1)  # some mask that is not causal and leaves each row something to read
LAYER = "TransformerEncoderLayer.forward in torch/nn/modules/transformer.py"
HEADS = "MultiheadAttention.forward in torch/nn/modules/activation.py"
FUNCTION = "multi_head_attention_forward in torch/nn/functional.py"


def seen(what, where):
    """What a failing assertion says."""
    return f"torch {SEEN}: {what}. This is torch {torch.__version__}: look at {where}, then at chapter 8"


@pytest.fixture
def made(fixed):
    """``made(H=3, norm_first=True)``: a layer in eval, the same in every run, no parameter at its start."""

    def layer(H=H, **options):
        options = {"dropout": 0.0, "activation": "gelu", "batch_first": True} | options
        one = nn.TransformerEncoderLayer(D, H, F, **options).double().eval()
        for seed, (name, parameter) in enumerate(one.named_parameters(), start=1):
            start = 1 if name.startswith("norm") and name.endswith("weight") else 0
            parameter.data = fixed(*parameter.shape, seed=seed) / 2 + start
        return one

    return layer


@pytest.fixture
def x(fixed):
    return fixed(N, L, D)


def same(one, other, tolerance=1e-12):
    return one.shape == other.shape and torch.allclose(one, other, atol=tolerance, rtol=0)


def fast(layer, *inputs, **masks):
    with torch.no_grad():
        return fused(lambda: layer(*inputs, **masks))


# The constructor.


def test_the_defaults():
    layer = nn.TransformerEncoderLayer(D, H)
    found = layer.linear1.out_features, layer.dropout.p, layer.activation, layer.norm1.eps
    flags = layer.self_attn.batch_first, layer.norm_first, layer.linear1.bias is not None
    assert found == (2048, 0.1, functional.relu, 1e-5), seen("F = 2048, dropout 0.1, ReLU, ε = 1e-5", "its constructor")
    assert flags == (False, False, True), seen("[L, N, D], Post-LN, with biases", "its constructor")


def test_the_inner_width_changes_no_shape_outside(made, x):
    for width in (1, 7, 64):
        layer = nn.TransformerEncoderLayer(D, H, width, batch_first=True).double()
        assert layer(x).shape == x.shape, seen("F does not change D", LAYER)


@pytest.mark.parametrize("name", ["silu", "GELU", "tanh"])
def test_two_activations_have_a_name(name):
    with pytest.raises(RuntimeError, match=f"activation should be relu/gelu, not {name}"):
        nn.TransformerEncoderLayer(D, H, F, activation=name)


def test_an_activation_may_be_any_callable_of_one_tensor(made, x):
    once, again = made(activation=functional.silu), made(activation=lambda h: h * h.sigmoid())
    assert same(once(x), again(x)), seen("a callable is called on W₁x + b₁", LAYER)


def test_biases_go_from_norms_and_projections_together(made):
    found = [name for name, _ in made(bias=False).named_parameters() if name.endswith("bias")]
    assert found == [], seen("bias=False leaves out every bias, those of the norms too", "its constructor")


def test_width_has_to_divide_by_heads():
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.TransformerEncoderLayer(D, 5, F)


def test_true_means_ignore(made, x, fixed):
    layer, other = made(), x.clone()
    other[PADDING] = fixed(*other[PADDING].shape, seed=7)
    real = ~PADDING
    here, there = (layer(rows, src_key_padding_mask=PADDING) for rows in (x, other))
    assert same(here[real], there[real]), seen("True in src_key_padding_mask is not read", HEADS)
    here, there = (layer(rows, src_key_padding_mask=~PADDING) for rows in (x, other))
    assert not same(here[real], there[real], 1e-3), seen("False is read", HEADS)


# The batch axis.


def test_the_default_takes_the_first_axis_for_the_sequence(made, x, fixed):
    right, batch_second = made(), made(batch_first=False)
    assert same(batch_second(x.transpose(0, 1)).transpose(0, 1), right(x)), seen("[L, N, D] by default", HEADS)
    other = x.clone()
    other[0] = fixed(L, D, seed=7)
    assert batch_second(x).shape == x.shape, seen("[N, L, D] fed to the default keeps its shape", HEADS)
    moved = (batch_second(other) - batch_second(x))[1:].abs().max()
    assert moved > 1e-3, seen("and the sequences of the batch read each other", HEADS)


def test_a_mask_exposes_the_mix_up_only_if_the_lengths_differ(made, x, fixed):
    with pytest.raises(AssertionError, match=f"to be {L}, but got {N}"):
        made(batch_first=False)(x, src_key_padding_mask=PADDING)
    square, padding = fixed(L, L, D), torch.arange(L) >= torch.tensor([3, 5, 4, 1, 2])[:, None]
    y = made(batch_first=False)(square, src_key_padding_mask=padding)
    assert y.shape == square.shape, seen("with N = L nothing is noticed", FUNCTION)


# What the fast path asks for.


def test_without_autograd_and_in_eval_the_whole_layer_is_one_operation(made, x):
    assert fast(made(), x) == "layer", seen("eval() and no_grad() take the fast path", LAYER)
    with torch.inference_mode():
        assert fused(lambda: made()(x)) == "layer", seen("so does inference_mode()", LAYER)
    assert fused(lambda: made()(x)) == "nothing", seen("with autograd it is not taken", LAYER)


def test_frozen_parameters_are_enough_if_the_input_needs_no_gradient(made, x):
    layer = made().requires_grad_(False)
    assert fused(lambda: layer(x)) == "layer", seen("no tensor asks for a gradient", LAYER)
    assert fused(lambda: layer(x.clone().requires_grad_())) == "nothing", seen("the input does", LAYER)
    layer.norm1.bias.requires_grad_(True)
    assert fused(lambda: layer(x)) != "layer", seen("one parameter does", LAYER)


def hooked(layer):
    layer.norm1.register_forward_hook(lambda *_: None)
    return layer


def pre_hooked(layer):
    layer.linear2.register_forward_pre_hook(lambda *_: None)
    return layer


def two_epsilons(layer):
    layer.norm2.eps = 1e-6
    return layer


# What keeps a layer from its fast path, and what of it is fused then. The documentation of 2.13 names the first five.
STOPS = {
    "training": (lambda made: made().train(), "nothing"),
    "[L, N, D]": (lambda made: made(batch_first=False), "nothing"),
    "silu": (lambda made: made(activation=functional.silu), "attention"),
    "a function that calls gelu": (lambda made: made(activation=lambda h: functional.gelu(h)), "attention"),
    "two epsilons": (lambda made: two_epsilons(made()), "attention"),
    "an odd number of heads": (lambda made: made(H=3), "nothing"),
    "one head": (lambda made: made(H=1), "nothing"),
    "no biases": (lambda made: made(bias=False), "nothing"),
    "a hook that does nothing": (lambda made: hooked(made()), "attention"),
    "a pre-hook that does nothing": (lambda made: pre_hooked(made()), "attention"),
}


@pytest.mark.parametrize("what", STOPS)
def test_this_keeps_a_layer_from_its_fast_path(made, x, what):
    build, part = STOPS[what]
    assert fast(build(made), x) == part, seen(f"{what}: fused is {part}", LAYER)


def test_a_single_sequence_does_too(made, x):
    assert fast(made(), x[0]) == "nothing", seen("two axes: the ordinary path", LAYER)


def test_so_does_the_global_switch(made, x):
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert fast(made(), x) == "nothing", seen("torch.backends.mha.set_fastpath_enabled(False)", LAYER)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


GOES = {
    "norm_first": {"norm_first": True},
    "relu": {"activation": "relu"},
    "nn.GELU()": {"activation": nn.GELU()},
    'nn.GELU("tanh")': {"activation": nn.GELU("tanh")},
    "four heads": {"H": 4},
    "dropout that eval switches off": {"dropout": 0.5},
}


@pytest.mark.parametrize("what", GOES)
def test_this_does_not(made, x, what):
    assert fast(made(**GOES[what]), x) == "layer", seen(f"{what} takes the fast path", LAYER)


MASKS = {
    "a padding mask": {"src_key_padding_mask": PADDING},
    "an attention mask": {"src_mask": CAUSAL},
    "both, against the documentation": {"src_key_padding_mask": PADDING, "src_mask": CAUSAL},
    "a float mask": {"src_mask": torch.zeros(L, L, dtype=torch.float64).masked_fill(CAUSAL, -torch.inf)},
}


@pytest.mark.parametrize("what", MASKS)
def test_no_mask_does(made, x, what):
    paths = both_paths(made(), x, **MASKS[what])
    assert paths.fast.fused == "layer", seen(f"{what} takes the fast path", LAYER)
    assert same(paths.fast.value, paths.ordinary.value), seen(f"{what}: both paths agree", "torch._transformer_encoder_layer_fwd")


def test_backward_hooks_global_hooks_and_the_mode_of_a_part_do_not(made, x):
    layer = made()
    layer.register_full_backward_hook(lambda *_: None)
    layer.self_attn.train()
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert fast(layer, x) == "layer", seen("only forward hooks of modules, and the layer's own mode, are looked at", LAYER)
    finally:
        handle.remove()


def test_autocast_on_the_cpu_does_not(made, x):
    layer = made(norm_first=True).float()
    with torch.autocast("cpu", torch.bfloat16):
        paths = both_paths(layer, x.float())
    assert paths.fast.fused == "layer", seen("only autocast of CUDA is asked for", LAYER)
    dtypes = paths.ordinary.value.dtype, paths.fast.value.dtype
    assert dtypes == (torch.float32, torch.bfloat16), seen("and the two paths return two dtypes", LAYER)


def test_a_derived_class_is_not_asked_for_its_own_methods(x):
    class WithoutNetwork(nn.TransformerEncoderLayer):
        def _ff_block(self, x):
            return torch.zeros_like(x)

    layer = WithoutNetwork(D, H, F, batch_first=True).double().eval()
    paths = both_paths(layer, x)
    assert paths.fast.fused == "layer" and not same(paths.fast.value, paths.ordinary.value, 1e-3), seen(
        "an overridden _ff_block is left out on the fast path", LAYER
    )


# Where the two paths answer differently.


def test_a_hint_without_a_mask(made, x):
    layer = made()
    paths = both_paths(layer, x, is_causal=True)
    assert "Need attn_mask" in paths.ordinary.error, seen("is_causal without a mask is refused with autograd", FUNCTION)
    assert same(paths.fast.value, layer(x)), seen("and ignored on the fast path: nothing is masked", LAYER)


@pytest.mark.parametrize("training", [True, False])
def test_a_wrong_hint_beats_the_mask_on_the_ordinary_path(made, x, training):
    layer = made().train(training)
    y = layer(x, src_mask=OTHER, is_causal=True)
    assert same(y, layer(x, src_mask=CAUSAL)) and not same(y, layer(x, src_mask=OTHER), 1e-3), seen(
        "the causal mask is used, the one given is dropped", FUNCTION
    )


def test_a_wrong_hint_is_ignored_on_the_fast_path(made, x):
    layer = made()
    y = both_paths(layer, x, src_mask=OTHER, is_causal=True).fast.value
    assert same(y, layer(x, src_mask=OTHER)), seen("the mask that is given counts", LAYER)


def test_a_wrong_hint_is_ignored_beside_a_padding_mask(made, x):
    layer, masks = made(), {"src_mask": OTHER, "src_key_padding_mask": torch.arange(L) >= torch.tensor([5, 5, 4])[:, None]}
    paths = both_paths(layer, x, **masks, is_causal=True)
    assert same(paths.ordinary.value, layer(x, **masks)), seen("beside a padding mask the mask counts", FUNCTION)


def test_an_all_padding_row_is_finite_on_one_path_and_nan_on_the_other(made, x):
    padding = PADDING.clone()
    padding[1] = True
    paths = both_paths(made(), x, src_key_padding_mask=padding)
    assert paths.ordinary.value.isfinite().all(), seen("finite with autograd", "scaled_dot_product_attention")
    assert paths.fast.value[1].isnan().all(), seen("NaN on the fast path", "torch._transformer_encoder_layer_fwd")
    assert paths.fast.value[[0, 2]].isfinite().all(), seen("and in that sequence only", "the same")


def test_a_finite_float_mask_means_ignore_on_the_fast_path(made, x):
    layer, distance = made(), (torch.arange(L)[:, None] - torch.arange(L)).abs().double()
    paths = both_paths(layer, x, src_mask=-distance)
    alone = layer(x, src_mask=~torch.eye(L).bool())
    assert same(paths.fast.value, alone), seen("each entry but 0 is taken for 'do not read'", "torch._transformer_encoder_layer_fwd")
    assert not same(paths.ordinary.value, alone, 1e-3), seen("with autograd it is added to the scores", FUNCTION)
    bias = torch.zeros(N, L, dtype=torch.float64)
    bias[:, 3] = -0.5
    paths = both_paths(layer, x, src_key_padding_mask=bias)
    assert same(paths.fast.value, layer(x, src_key_padding_mask=bias != 0)), seen("the same for a padding mask", LAYER)


def test_float_and_bool_masks_mixed_only_warn(made, x):
    float_causal = torch.zeros(L, L, dtype=torch.float64).masked_fill(CAUSAL, -torch.inf)
    paths = both_paths(made(), x, src_mask=float_causal, src_key_padding_mask=PADDING)
    due = made()(x, src_mask=CAUSAL, src_key_padding_mask=PADDING)
    for path in paths:
        assert any("mismatched src_key_padding_mask and src_mask" in text for text in path.warnings), seen("it warns", FUNCTION)
        assert same(path.value, due), seen("and computes what two bool masks would", FUNCTION)


def test_the_tanh_gelu_runs_as_the_exact_one_on_the_fast_path(made, x):
    paths = both_paths(made(activation=nn.GELU("tanh")), x)
    tanh, exact = made(activation=partial(functional.gelu, approximate="tanh"))(x), made()(x)
    assert same(paths.ordinary.value, tanh) and same(paths.fast.value, exact), seen("nn.GELU is taken for the exact one", LAYER)
    assert not same(tanh, exact, 1e-6)


# Attention's weights, and stacks.


@pytest.mark.parametrize("training", [True, False])
def test_weights_in_training_are_those_after_dropout(fixed, training):
    attention, x = nn.MultiheadAttention(D, H, dropout=0.4, batch_first=True).double().train(training), fixed(N, L, D)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        weights = attention(x, x, x, average_attn_weights=False)[1]
    whole = same(weights.sum(-1), torch.ones(N, H, L).double())
    assert whole is not training, seen("need_weights returns what dropout left; its rows do not sum to 1", FUNCTION)
    assert (weights == 0).any().item() is training


def stack(made, **options):
    return nn.TransformerEncoder(made(), 2, **options).eval()


def test_a_stack_fills_the_padding_with_zeros_on_the_fast_path_and_keeps_the_length(made, x):
    paths = both_paths(stack(made), x[[0, 2]], src_key_padding_mask=PADDING[[0, 2]])
    y, real = paths.fast.value, ~PADDING[[0, 2]]
    where = "TransformerEncoder.forward: to_padded_tensor(0.0, src.size())"
    assert y.shape == (2, L, D), seen("the output is as long as the input", where)
    assert (y[~real] == 0).all() and not (paths.ordinary.value[~real] == 0).any(), seen("padding is 0", where)
    assert same(y[real], paths.ordinary.value[real])
    assert any("nested tensors" in text for text in paths.fast.warnings), seen("and it warns of a prototype", where)


def test_a_stack_with_a_final_norm_fills_it_with_beta(made, x, fixed):
    norm = nn.LayerNorm(D).double()
    norm.bias.data = fixed(D, seed=9)
    y = both_paths(stack(made, norm=norm), x, src_key_padding_mask=PADDING).fast.value
    assert same(y[PADDING], norm.bias.expand_as(y[PADDING])), seen("the final norm reads zeros at padding", "TransformerEncoder")


def test_a_stack_makes_an_all_padding_row_zero_where_a_layer_makes_it_nan(made, x):
    padding = PADDING.clone()
    padding[1] = True
    y = both_paths(stack(made), x, src_key_padding_mask=padding).fast.value
    assert (y[1] == 0).all(), seen("nested tensors leave nothing of it", "TransformerEncoder.forward")


def test_padding_in_front_is_not_nested_unless_the_check_is_off(made, x):
    front, real = PADDING.flip(1), ~PADDING.flip(1)
    checked, unchecked = stack(made), stack(made, mask_check=False)
    assert same(*(path.value[real] for path in both_paths(checked, x, src_key_padding_mask=front))), seen("checked", "mask_check")
    paths = both_paths(unchecked, x, src_key_padding_mask=front)
    assert not same(paths.ordinary.value[real], paths.fast.value[real], 1e-3), seen("unchecked rows move", "mask_check")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_input_is_taken_by_the_fast_path_only_and_comes_back_as_long_as_its_longest(made, x):
    layer = made()
    nested = torch.nested.nested_tensor([x[0, :3], x[2, :4]])
    with torch.no_grad():
        y = layer(nested)
    assert y.is_nested and y.to_padded_tensor(0.0).shape == (2, 4, D), seen("the length is lost", "to_padded_tensor")
    with pytest.raises(AssertionError, match="does not support NestedTensor outside of its fast path"):
        layer(nested)
    with torch.no_grad(), pytest.raises(AssertionError, match="does not support NestedTensor outside of its fast path"):
        layer(nested, src_key_padding_mask=PADDING[[0, 2]])


def test_a_pre_ln_stack_is_never_nested(made):
    with pytest.warns(UserWarning, match="self.use_nested_tensor is False because encoder_layer.norm_first was True"):
        assert not nn.TransformerEncoder(made(norm_first=True), 2).use_nested_tensor
