"""The signatures' axis letters are checked here, on every call, and nowhere else."""

import pytest
import torch
from beartype import BeartypeConf, beartype
from jaxtyping import config, install_import_hook

# A whole number is a fine float: eps=0.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
install_import_hook("oneblock", f"{__name__}.checked")


@pytest.fixture
def as_readers_run_it():
    """Without the check of signatures, so that the library's own messages are reached."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def fixed():
    """``fixed(2, 3, 5)``: a tensor of that shape, the same in every run, without pattern, roughly N(0, 1)."""

    def tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    return tensor
