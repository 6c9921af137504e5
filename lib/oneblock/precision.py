"""Half precision is stored, not computed in."""

import torch
from torch import Tensor


def widened(x: Tensor) -> Tensor:
    """``x`` in the dtype to compute in: float32 for float16 and bfloat16, else ``x`` itself.

    This is what torch's own kernels do for norms and activations: the result is rounded once, at the end.
    Source: ``torch._prims_common.get_computation_dtype``.
    """
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
