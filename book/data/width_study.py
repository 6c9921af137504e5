"""Makes width_study.json: the polarity of a sentence, read by blocks with FFNs of different widths. Run it as

    python book/data/width_study.py

It trains for about two minutes: one block, 80 times.
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.failures.width import WIDTHS, trial
from oneblock.stored import store

FOURS = (16, 3)
SEEDS = range(5)
KINDS = list(product(WIDTHS, FOURS, SEEDS))

if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = [trial(*kind) for kind in KINDS]
    store(Path(__file__).with_suffix(".json"), "book/data/width_study.py", trials)
