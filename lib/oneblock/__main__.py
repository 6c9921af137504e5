"""``python -m oneblock diagnose package.module:factory --dim 64 --heads 4``: the checks from the command line.

Exit status 0: nothing failed; 1: a check failed or crashed; 2: the command cannot be understood, or makes no block.
"""

import argparse
import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from inspect import Parameter, signature

import torch

from oneblock.checks import Adapter, Report, diagnose
from oneblock.checks.subject import AXES, HEADS, MEANINGS, PARTS, WIDTHS
from oneblock.errors import ArgumentError

HIDDEN = ("F", "dim_feedforward", "hidden_dim", "d_ff", "ffn_dim", "mlp_dim", "intermediate_size")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        report = _diagnosed(given)
    except Exception as error:  # also what the factory raises: a check's own exception is a finding already
        parser.error(str(error) or type(error).__name__)
    print(report.to_json() if given.json else report.text)
    return 0 if report.ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m oneblock", description="Checks of one Transformer block.")
    diagnose = parser.add_subparsers(required=True, metavar="diagnose").add_parser("diagnose", help="run every check on a block")
    add = diagnose.add_argument
    add("factory", metavar="package.module:factory", help="a class or function that makes the block")
    add("--dim", type=int, required=True, help="D, the width of a row")
    add("--heads", type=int, help="H, handed to the factory if it takes a number of heads")
    add("--hidden", type=int, help="F, handed over in the same way; 4 D where the factory demands one")
    add("--set", metavar="NAME=VALUE", action="append", default=[], help="a further argument of the factory")
    add("--length", type=int, help="L, if the block takes one length only")
    add("--mask", choices=[*MEANINGS, "none"], help="what the block's mask means: True is real, True is padding, 0 and -inf")
    add("--mask-name", help="the name under which the mask is handed over")
    add("--mask-axes", choices=AXES, default="N L")
    add("--batch-second", action="store_true", help="the block takes [L, N, D]")
    add("--causal", action="store_true", help="no position may read a later one")
    add("--positions", action="store_true", help="the block itself tells positions apart")
    add("--attention-out", metavar="NAME", nargs="+", help="the linear map that ends the attention, such as attn.o; else it is looked for")
    add("--ffn-out", metavar="NAME", nargs="+", help="the linear map that ends the FFN, such as mlp.2")
    add("--norms", metavar="NAME", nargs="+", help="the norms, in the order of computation")
    add("--dtype", choices=DTYPES, default="float32")
    add("--json", action="store_true", help="print JSON")
    return parser


def _diagnosed(given: argparse.Namespace) -> Report:
    block = _made(given).to(DTYPES[given.dtype])
    claims = {"L": given.length, "H": given.heads, "causal": given.causal, "positions": given.positions}
    claims |= {part: tuple(getattr(given, part) or ()) for part in PARTS}
    call = None
    if given.mask or given.batch_second:
        meaning = None if given.mask in (None, "none") else given.mask
        call = Adapter(meaning, given.mask_name, given.mask_axes, not given.batch_second)
    return diagnose(block, given.dim, call, **claims)


def _made(given: argparse.Namespace) -> torch.nn.Module:
    """What the factory makes; sizes are handed over under the name that it has for them."""
    module, _, name = given.factory.partition(":")
    if not name:
        raise ArgumentError("factory", "package.module:factory", given.factory)
    factory = import_module(module)
    for part in name.split("."):
        factory = getattr(factory, part)
    options = dict(_option(text) for text in given.set)
    for names, size in ((WIDTHS, given.dim), (HEADS, given.heads), (HIDDEN, given.hidden)):
        options |= _named(factory, names, size, {HIDDEN: 4 * given.dim}.get(names))
    _check_complete(factory, options)
    block = factory(**options)
    if not isinstance(block, torch.nn.Module):
        raise ArgumentError("factory", "a class or function that makes a torch module", type(block).__name__)
    return block


def _named(factory: object, names: tuple[str, ...], size: int | None, if_demanded: int | None) -> dict[str, int]:
    """``{name: size}`` under the name that the factory takes."""
    takes = signature(factory).parameters
    for name in names:
        if name in takes:
            demanded = takes[name].default is Parameter.empty
            size = if_demanded if size is None and demanded else size
            return {} if size is None else {name: size}
    return {}


def _check_complete(factory: object, options: dict[str, object]) -> None:
    """Refuses a command that leaves out what the factory demands, and says how to say it."""
    named = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    demanded = [name for name, one in signature(factory).parameters.items() if one.default is Parameter.empty and one.kind in named]
    missing = [name for name in demanded if name not in options]
    if missing:
        hint = " ".join(f"--set {name}=VALUE" for name in missing)
        raise ArgumentError("factory", f"given {', '.join(demanded)}", sorted(options), f"add {hint}")


def _option(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentError("--set", "NAME=VALUE", text)
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


if __name__ == "__main__":
    sys.exit(main())
