"""Makes orders_study.json: both orders of norm and sum in training, with and without warm-up. Run it as

    python book/data/orders_study.py

It trains for about ten minutes: six blocks at four learning rates, and twelve blocks at one.
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.orders import trial
from oneblock.stored import store

ORDERS = ("Pre-LN", "Post-LN")
WARMUPS = (0, 100)
SEEDS = range(5)
KINDS = [
    *product(ORDERS, (0.001, 0.003, 0.01, 0.03), WARMUPS, SEEDS, (6,)),
    *product(ORDERS, (0.003,), WARMUPS, SEEDS, (12,)),
]

if __name__ == "__main__":
    torch.set_num_threads(1)
    trials = [trial(*kind) for kind in KINDS]
    store(Path(__file__).with_suffix(".json"), "book/data/orders_study.py", trials)
