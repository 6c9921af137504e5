"""The profiler's answer to what ran; the conditions themselves are in ``test_official_contract.py``."""

import warnings

import torch
from torch import nn

from oneblock.fast_path import both_paths, fused, operations, outcome

D, H, F = 6, 2, 11


def layer_and_rows(fixed, **options):
    options = {"dropout": 0.0, "batch_first": True} | options
    return nn.TransformerEncoderLayer(D, H, F, **options).double().eval(), fixed(3, 5, D)


def test_operations_are_listed_by_the_names_that_torch_gives_them(fixed):
    x = fixed(2, 3)
    assert operations(x.sin) == ["aten::sin"]
    assert operations(lambda: None) == []


def test_it_tells_a_fused_layer_from_fused_attention_and_from_neither(fixed):
    layer, x = layer_and_rows(fixed)
    with torch.no_grad():
        assert fused(lambda: layer(x)) == "layer"
        assert fused(lambda: layer.self_attn(x, x, x)) == "attention"
    assert fused(lambda: layer(x)) == "nothing"


def test_both_paths_run_the_same_call_with_and_without_autograd(fixed):
    layer, x = layer_and_rows(fixed)
    paths = both_paths(layer, x)
    assert (paths.ordinary.fused, paths.fast.fused) == ("nothing", "layer")
    torch.testing.assert_close(paths.ordinary.value, paths.fast.value, atol=1e-12, rtol=0)
    assert not x.requires_grad and paths.ordinary.error == "" and paths.ordinary.warnings == ()


def test_both_paths_do_not_depend_on_where_they_are_asked_for(fixed):
    layer, x = layer_and_rows(fixed)
    with torch.no_grad():
        paths = both_paths(layer.requires_grad_(False), x)
    assert (paths.ordinary.fused, paths.fast.fused) == ("nothing", "layer")


def test_masks_are_handed_on(fixed):
    layer, x = layer_and_rows(fixed)
    padding = torch.tensor([[False] * 4 + [True]] * 3)
    paths = both_paths(layer, x, src_key_padding_mask=padding)
    assert torch.equal(paths.ordinary.value, layer(x, src_key_padding_mask=padding))
    assert not torch.allclose(paths.fast.value, layer(x))


def test_an_error_is_kept_as_text():
    def refuses():
        raise KeyError("no such thing")

    assert outcome(refuses) == (None, "KeyError: 'no such thing'", (), "nothing")


def test_warnings_are_kept_as_text_and_not_shown(fixed, recwarn):
    def warns():
        warnings.warn("once", stacklevel=1)
        warnings.warn("twice", stacklevel=1)
        return fixed(2)

    assert outcome(warns).warnings == ("once", "twice")
    assert len(recwarn) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcome(warns).warnings == ("once", "twice")


def test_what_torch_warns_of_once_is_heard_each_time(fixed, recwarn):
    for _ in range(2):
        heard = outcome(lambda: torch.nested.nested_tensor([fixed(2, 3), fixed(1, 3)])).warnings
        assert ["prototype" in text for text in heard] == [True]
    assert not torch.is_warn_always_enabled()


def test_the_profiler_prints_nothing(fixed, capfd):
    operations(fixed(2, 3).sin)
    assert capfd.readouterr().err == ""
