"""The command line: what it prints and what it returns."""

import json
import subprocess
import sys

import pytest
from torch import nn
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from oneblock.__main__ import main

OURS = ["diagnose", "oneblock.blocks:PreNorm", "--dim", "12", "--heads", "2"]
WRONG = ["diagnose", "oneblock.mutants:NormAfterSum", "--dim", "12", "--heads", "2"]


class Ambiguous(nn.Linear):
    """Takes a mask whose name does not tell what True means."""

    def __init__(self, D):
        super().__init__(D, D)

    def forward(self, x, mask=None):
        return super().forward(x)


class Unseen(nn.Module):
    """No module of it is called, so that what its parts do cannot be seen from outside."""

    def __init__(self, D):
        super().__init__()
        self.a, self.b, self.qkv, self.o = nn.LayerNorm(D), nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        q, k, v = linear(self.normed(self.a, x), self.qkv.weight, self.qkv.bias).chunk(3, -1)
        u = x + linear(scaled_dot_product_attention(q, k, v), self.o.weight, self.o.bias)
        return u + linear(linear(self.normed(self.b, u), self.up.weight, self.up.bias).relu(), self.down.weight, self.down.bias)

    def normed(self, norm, x):
        return layer_norm(x, norm.normalized_shape, norm.weight, norm.bias)


def test_a_block_that_is_right_is_status_0(capsys):
    assert main(OURS) == 0
    assert capsys.readouterr().out.startswith("PreNorm: 20 passed, 0 failed, 1 not applicable, 0 crashed\n")


def test_a_block_that_is_wrong_is_status_1_and_json_is_printed(capsys):
    assert main([*WRONG, "--json", "--hidden", "20"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert {found["check"] for found in data["findings"] if found["outcome"] == "failed"} == {"sublayers_off", "official_parity"}


def test_sizes_reach_the_factory_under_its_own_names(capsys):
    assert main(["diagnose", "torch.nn:TransformerEncoderLayer", "--dim", "12", "--heads", "2", "--set", "norm_first=True", "--dtype", "float64"]) == 0
    assert "20 passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags, due",
    [
        ([], ["not applicable", "not applicable"]),
        (["--attention-out", "o"], ["passed", "passed"]),
        (["--attention-out", "o", "--ffn-out", "down", "--norms", "a", "b"], ["passed", "passed"]),
        (["--attention-out", "o", "--ffn-out", "up"], ["failed", "passed"]),
    ],
)
def test_parts_that_are_named_are_switched_off(capsys, flags, due):
    main(["diagnose", f"{__name__}:Unseen", "--dim", "12", "--json", *flags])
    found = {finding["check"]: finding["outcome"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert [found["sublayers_off"], found["token_independence"]] == due


@pytest.mark.parametrize("flags, due", [([], "passed"), (["--mask", "none"], "not applicable")])
def test_what_is_said_of_the_mask_reaches_the_checks(capsys, flags, due):
    main([*OURS, "--json", *flags])
    found = {finding["check"]: finding["outcome"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert found["padding_leak"] == due


def test_a_mask_of_the_wrong_polarity_is_found_out(capsys):
    layer = ["diagnose", "torch.nn:TransformerEncoderLayer", "--dim", "12", "--heads", "2", "--batch-second"]
    assert main([*layer, "--mask", "real", "--mask-name", "src_key_padding_mask"]) == 1
    assert "✗ Is blind to padding: failed" in capsys.readouterr().out


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "the following arguments are required"),
        (["diagnose", "oneblock.blocks", "--dim", "12"], "factory must be package.module:factory; got 'oneblock.blocks'"),
        (["diagnose", "nowhere:Block", "--dim", "12"], "No module named 'nowhere'"),
        (["diagnose", "oneblock.blocks:Nothing", "--dim", "12"], "has no attribute 'Nothing'"),
        (["diagnose", "pathlib:PurePosixPath", "--dim", "12"], "factory must be a class or function that makes a torch module; got 'PurePosixPath'"),
        (["diagnose", "oneblock.blocks:PreNorm", "--dim", "12", "--heads", "5"], "H must be a divisor of D = 12; got 5"),
        (["diagnose", "torch.nn:Bilinear", "--dim", "12", "--set", "bias=False"], "got ['bias']; add --set in1_features=VALUE --set in2_features=VALUE --set out_features=VALUE"),
        (["diagnose", "torch:conv1d", "--dim", "12"], "no signature found"),
        (["diagnose", "oneblock.mutants:NormAfterSum", "--dim", "12", "--heads", "2", "--set", "activation=tanh"], "activation must be one of"),
        (["diagnose", f"{__name__}:Ambiguous", "--dim", "12"], "got ['mask']; Adapter('real', name), 'padding' or 'additive', or Adapter() for no mask; on the command line, --mask"),
        ([*OURS, "--attention-out", "o", "out_proj"], "attention_out must be names of maps with parameters; got ['o', 'out_proj']; there are: self_attn, self_attn.out_proj, "),
        ([*OURS, "--norms", "norm1", "norm3"], "norms must be names of submodules; got ['norm3']; there are: self_attn, "),
        ([*OURS, "--set", "dropout"], "--set must be NAME=VALUE; got 'dropout'"),
    ],
)
def test_a_command_that_cannot_be_carried_out_is_status_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2 and message in capsys.readouterr().err


def test_the_module_runs_as_a_command(tmp_path):
    (tmp_path / "mine.py").write_text("from torch import nn\ndef block():\n    return nn.Identity()\n", "utf-8")
    command = [sys.executable, "-m", "oneblock", "diagnose", "mine:block", "--dim", "8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout.startswith("Identity: "), done.stderr
    assert "✗ Overfits four texts: failed" in done.stdout
