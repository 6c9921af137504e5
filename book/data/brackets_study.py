"""Makes brackets_study.json: nested brackets, learned to two depths. Run it as

    python book/data/brackets_study.py

It trains for about a minute: two blocks, 6 times.
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.failures.brackets import trial
from oneblock.stored import store

DEEPEST = (3, 7)
SEEDS = range(3)
KINDS = list(product(DEEPEST, SEEDS))

if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = [trial(*kind) for kind in KINDS]
    store(Path(__file__).with_suffix(".json"), "book/data/brackets_study.py", trials)
