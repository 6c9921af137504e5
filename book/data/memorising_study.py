"""Makes memorising_study.json: few names, with their own classes and with shuffled ones. Run it as

    python book/data/memorising_study.py

It trains for about three minutes: one block, 30 times.
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.failures.memorising import LABELS, trial
from oneblock.stored import store

NAMES = (50, 100, 200, 400, 800)
SEEDS = range(3)
KINDS = list(product(NAMES, LABELS, SEEDS))

if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = [trial(*kind) for kind in KINDS]
    store(Path(__file__).with_suffix(".json"), "book/data/memorising_study.py", trials)
