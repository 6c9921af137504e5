"""The coding exercises, by name; what each asks for stands in its chapter."""

from oneblock.exercises.exercise import Exercise
from oneblock.exercises.rows import FFN, LAYER_NORM, LAYER_NORM_JACOBIAN, RESIDUAL_BLOCK, RMS_NORM, SILU, SWIGLU
from oneblock.exercises.tokens import MASKED_MEAN, MASKED_SOFTMAX, PADDING_MOVE
from oneblock.exercises.wholes import CROSSOVER, POST_NORM, PRE_NORM, TRAINING_STEP

EXERCISES: dict[str, Exercise] = {
    "ffn": FFN,
    "residual_block": RESIDUAL_BLOCK,
    "layer_norm": LAYER_NORM,
    "rms_norm": RMS_NORM,
    "layer_norm_jacobian": LAYER_NORM_JACOBIAN,
    "silu": SILU,
    "swiglu": SWIGLU,
    "masked_mean": MASKED_MEAN,
    "masked_softmax": MASKED_SOFTMAX,
    "padding_move": PADDING_MOVE,
    "pre_norm": PRE_NORM,
    "post_norm": POST_NORM,
    "crossover": CROSSOVER,
    "training_step": TRAINING_STEP,
}
