"""All mistakes: the wrong one, the right one it stems from, the place where they differ, and where it was seen.

::

    mistake = MISTAKES["unscaled"]
    wrong, right = mistake.build(D=6, H=3, F=11), mistake.build_right(D=6, H=3, F=11)
    mistake.lines()            # ["- return q @ k.mT / sqrt(q.shape[-1])", "+ return q @ k.mT"]
    mistake_words("unscaled")  # its story, its fix, and when it hides
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import ndiff
from inspect import getsource
from textwrap import dedent

from torch import nn

from oneblock.blocks import PreNorm
from oneblock.classifier import Classifier
from oneblock.errors import ArgumentError
from oneblock.mutants import attention, classifiers, dropouts, masks, networks, norms, ports, procedures, sums
from oneblock.mutants.classifiers import PlainClassifier
from oneblock.mutants.plain import Plain
from oneblock.words import words

BLOCK, CLASSIFIER, PROCEDURE = "block", "classifier", "procedure"
SIZES = {"V": 13, "C": 5, "L": 11, "K": 2}
"""Of a classifier, where nothing else is asked for."""


@dataclass(frozen=True)
class Mistake:
    """A wrong class or function, called like the right one.

    Args:
        wrong, right: of one kind: a block ``[N, L, D] → [N, L, D]`` with ``valid_tokens``, a classifier of token ids, or
            a procedure, which is a function.
        place: the method that differs; of a procedure there is none.
        hides: whether there is a condition under which the two agree; it is told in ``words``.
        source: an issue or a change of a public repository that shows it; empty where none is known to us.
        claims: what is claimed of the right one, as :func:`oneblock.checks.diagnose` takes it.
    """

    wrong: Callable
    right: Callable
    place: str = ""
    hides: bool = True
    source: str = ""
    claims: dict[str, object] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What it is: ``block``, ``classifier`` or ``procedure``."""
        if not isinstance(self.wrong, type):
            return PROCEDURE
        return CLASSIFIER if issubclass(self.wrong, Classifier) else BLOCK

    @property
    def group(self) -> str:
        """What is wrong in it: the file that it stands in."""
        return self.wrong.__module__.rpartition(".")[2]

    def build(self, D: int, H: int, F: int, **options: object) -> nn.Module:
        """The wrong module. Options are those of the right one; a classifier's sizes are ``SIZES`` without them.

        Raises:
            ArgumentError: the mistake is a procedure; or as the right one.
        """
        return self._built(self.wrong, D, H, F, options)

    def build_right(self, D: int, H: int, F: int, **options: object) -> nn.Module:
        """The right module; arguments and errors are those of :meth:`build`."""
        return self._built(self.right, D, H, F, options)

    def _built(self, module: Callable, D: int, H: int, F: int, options: dict[str, object]) -> nn.Module:
        if self.kind == PROCEDURE:
            raise ArgumentError("kind", "block or classifier", PROCEDURE, "call .wrong and .right as the functions they are")
        sizes = SIZES if self.kind == CLASSIFIER else {}
        return module(D=D, H=H, F=F, **{**sizes, **options})

    def lines(self) -> list[str]:
        """The statements that differ, ``- `` the right ones and ``+ `` the wrong; where the wrong calls the right, its own."""
        right, wrong = self._statements(self.right), self._statements(self.wrong)
        signs = "+" if any("super()" in line for line in wrong) else "-+"
        return [f"{line[0]} {line[2:].strip()}" for line in ndiff(right, wrong) if line[0] in signs]

    def _statements(self, one: Callable) -> list[str]:
        """The body of a function, without its docstring."""
        source = dedent(getsource(getattr(one, self.place) if self.place else one))
        function = ast.parse(source).body[0]
        body = function.body[1:] if ast.get_docstring(function) else function.body
        return "\n".join(map(ast.unparse, body)).splitlines()


def mistake_words(name: str, language: str = "en") -> dict[str, str]:
    """``story``, ``fix`` and, if there is a condition under which it hides, ``hides_when``."""
    return words(language)["mistakes"][name]


def _github(thread: str) -> str:
    """An issue or a pull request of GitHub, which leads from the one address to the other."""
    repository, number = thread.split("#")
    return f"https://github.com/{repository}/issues/{number}"


def _mistake(
    wrong: Callable, right: Callable, place: str = "", thread: str = "", hides: bool = True, **claims: object
) -> Mistake:
    return Mistake(wrong, right, place, hides, thread and _github(thread), claims)


MISTAKES: dict[str, Mistake] = {
    # norms
    "norm_after_sum": _mistake(norms.NormAfterSum, PreNorm, "forward", "SHI-Labs/Compact-Transformers#25", hides=False),
    "one_norm_twice": _mistake(norms.OneNormTwice, PreNorm, "__init__", "allenai/OLMo#222"),
    "norm_over_tokens": _mistake(
        norms.NormOverTokens, Plain, "normed", "jadore801120/attention-is-all-you-need-pytorch#17", hides=False
    ),
    "norm_over_text": _mistake(norms.NormOverText, Plain, "normed", "Qualcomm-AI-research/geometric-algebra-transformer#8"),
    "norm_over_batch": _mistake(norms.NormOverBatch, Plain, "normed", "deepinv/deepinv#1079"),
    "unbiased_variance": _mistake(norms.UnbiasedVariance, Plain, "normed", "harvardnlp/annotated-transformer#119"),
    "eps_outside_root": _mistake(norms.EpsOutsideRoot, Plain, "normed", "codertimo/BERT-pytorch#30"),
    "rms_for_layer_norm": _mistake(norms.RMSForLayerNorm, Plain, "normed"),
    # attention
    "softmax_over_queries": _mistake(
        attention.SoftmaxOverQueries, Plain, "softmax", "labmlai/annotated_deep_learning_paper_implementations#146"
    ),
    "softmax_over_heads_too": _mistake(attention.SoftmaxOverHeadsToo, Plain, "softmax", "facebookresearch/detr#247"),
    "unscaled": _mistake(attention.Unscaled, Plain, "scores", "Project-MONAI/GenerativeModels#146"),
    "scaled_by_width": _mistake(attention.ScaledByWidth, Plain, "scores", "lucidrains/vit-pytorch#65"),
    "heads_by_view": _mistake(attention.HeadsByView, Plain, "split", "reczoo/FuxiCTR#30"),
    "joined_by_view": _mistake(attention.JoinedByView, Plain, "join", "jsbaan/transformer-from-scratch#6"),
    "batch_second": _mistake(attention.BatchSecond, Plain, "attend", "Exorust/TorchLeet#5"),
    "no_output_projection": _mistake(attention.NoOutputProjection, Plain, "out", "Kyubyong/transformer#117"),
    # masks
    "mask_inverted": _mistake(masks.MaskInverted, Plain, "masked", "lucidrains/x-transformers#160"),
    "mask_on_queries": _mistake(masks.MaskOnQueries, Plain, "masked", "hyunwoongko/transformer#40"),
    "mask_too_weak": _mistake(masks.MaskTooWeak, Plain, "masked", "TransformerLensOrg/TransformerLens#319"),
    "mask_after_softmax": _mistake(masks.MaskAfterSoftmax, Plain, "weights", "huggingface/pytorch-image-models#2236"),
    "mask_forgotten": _mistake(masks.MaskForgotten, Plain, "weights", "keras-team/keras-hub#2220"),
    "causal_off_by_one": _mistake(masks.CausalOffByOne, masks.Causal, "may_read", "RVC-Boss/GPT-SoVITS#965", causal=True),
    # sums
    "no_attention_residual": _mistake(
        sums.NoAttentionResidual, PreNorm, "forward", "lucidrains/audiolm-pytorch#150", hides=False
    ),
    "residual_from_normed": _mistake(sums.ResidualFromNormed, PreNorm, "forward", "pytorch/pytorch#61165"),
    "residual_scaled": _mistake(sums.ResidualScaled, PreNorm, "forward"),
    "no_projection_back": _mistake(sums.NoProjectionBack, Plain, "process", "sooftware/kospeech#43", hides=False),
    "detached": _mistake(sums.Detached, Plain, "out", "lucidrains/CoCa-pytorch#6"),
    "writes_into_input": _mistake(sums.WritesIntoInput, PreNorm, "forward", "sgl-project/sglang#28005"),
    # networks
    "convolution_over_tokens": _mistake(networks.ConvolutionOverTokens, Plain, "process"),
    "channels_by_view": _mistake(networks.ChannelsByView, Plain, "process", "rish-16/tokenlearner-pytorch#1"),
    "one_matrix_for_both": _mistake(networks.OneMatrixForBoth, Plain, "process"),
    "no_activation": _mistake(networks.NoActivation, Plain, "phi", "spring-media/TransformerTTS#102"),
    "gate_and_up_swapped": _mistake(networks.GateAndUpSwapped, networks.Gated, "process", "ml-explore/mlx-lm#767"),
    # dropouts
    "dropout_always_on": _mistake(dropouts.DropoutAlwaysOn, Plain, "process", "karpathy/nanoGPT#240"),
    "dropout_sites_merged": _mistake(dropouts.DropoutSitesMerged, Plain, "process", "neulab/xnmt#544"),
    "dropout_on_the_sum": _mistake(dropouts.DropoutOnTheSum, PreNorm, "forward", "hyunwoongko/transformer#8"),
    # ports
    "tanh_gelu": _mistake(ports.TanhGelu, PreNorm, "__init__", "kyutai-labs/pocket-tts#278"),
    "other_eps": _mistake(ports.OtherEps, PreNorm, "__init__", "huggingface/candle#271"),
    "keys_first": _mistake(ports.KeysFirst, Plain, "project", "vllm-project/vllm#42803"),
    "output_transposed": _mistake(ports.OutputTransposed, Plain, "out", "AutoGPTQ/AutoGPTQ#139"),
    # classifiers
    "mean_over_padding": _mistake(
        classifiers.MeanOverPadding, PlainClassifier, "pooled", "autoliuweijie/BERT-whitening-pytorch#13"
    ),
    "last_position": _mistake(classifiers.LastPosition, PlainClassifier, "pooled", "vgel/repeng#38"),
    "no_final_norm": _mistake(classifiers.NoFinalNorm, Classifier, "__init__", "NVIDIA-NeMo/Speech#2197"),
    "positions_per_text": _mistake(classifiers.PositionsPerText, PlainClassifier, "rows", "cmu-l3/anlp-fall2025-code#1"),
    "positions_twice": _mistake(classifiers.PositionsTwice, PlainClassifier, "rows", "gaasher/I-JEPA#4"),
    "one_block_k_times": _mistake(classifiers.OneBlockKTimes, Classifier, "__init__", "zalandoresearch/pytorch-vq-vae#2"),
    "blocks_in_a_list": _mistake(classifiers.BlocksInAList, Classifier, "__init__", "maruya24/pytorch_robotics_transformer#3"),
    # procedures
    "loss_over_padding": _mistake(
        procedures.loss_over_padding, procedures.loss_of_tokens, thread="EleutherAI/gpt-neo#45"
    ),
    "softmax_before_loss": _mistake(
        procedures.softmax_before_loss, procedures.loss, thread="Lightning-Universe/lightning-bolts#654"
    ),
    "eval_only": _mistake(procedures.eval_only, procedures.predictions, thread="hszhao/semseg#60"),
    "inference_only": _mistake(procedures.inference_only, procedures.predictions, thread="ipolharvard/ethos-ares#20"),
    "step_without_forgetting": _mistake(
        procedures.step_without_forgetting, procedures.step, thread="karpathy/llm.c#548"
    ),
    "at_one_rate": _mistake(procedures.at_one_rate, procedures.at_own_rates),
}
