"""The block's neighbours: what else stands between two residual sums. Each file is one module."""

from oneblock.neighbours.attention_only import AttentionOnly
from oneblock.neighbours.causal import CausalBlock
from oneblock.neighbours.convolution import ConvolutionBlock
from oneblock.neighbours.decoder import DecoderBlock
from oneblock.neighbours.gated import GatedBlock
from oneblock.neighbours.mixer import MixerBlock
from oneblock.neighbours.mixture import MixtureBlock, MixtureOfExperts
from oneblock.neighbours.windowed import WindowedBlock

__all__ = [
    "AttentionOnly",
    "CausalBlock",
    "ConvolutionBlock",
    "DecoderBlock",
    "GatedBlock",
    "MixerBlock",
    "MixtureBlock",
    "MixtureOfExperts",
    "WindowedBlock",
]
