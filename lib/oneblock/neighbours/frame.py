"""What the neighbours have in common: the check of what comes in, and norms with names of their own in a trace."""

from torch import nn

from oneblock.blocks import Parts
from oneblock.errors import check_size


class Frame(nn.Module):
    """A block of width D whose parts its own class makes: one or two norms, and what stands in the branches."""

    def __init__(self, D: int) -> None:
        super().__init__()
        check_size("D", D)
        self.D = D

    enter, first_norm, second_norm = Parts.enter, Parts.first_norm, Parts.second_norm
