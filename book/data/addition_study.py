"""Makes addition_study.json: long addition, learned with four kinds of positions. Run it as

    python book/data/addition_study.py

It trains for about twenty minutes: two blocks, 24 times.
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.failures.addition import POSITIONS, trial
from oneblock.stored import store

NINES = (0.0, 0.5)
SEEDS = range(3)
KINDS = list(product(POSITIONS, NINES, SEEDS))

if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = [trial(*kind) for kind in KINDS]
    store(Path(__file__).with_suffix(".json"), "book/data/addition_study.py", trials)
