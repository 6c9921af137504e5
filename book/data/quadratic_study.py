"""Makes quadratic_study.json: bytes and seconds of attention and FFN over the length. Run it as

    python book/data/quadratic_study.py

It takes about a minute. The bytes are the same on every machine, the seconds are not.
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.failures.quadratic import WAYS, cost
from oneblock.stored import store

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
KINDS = list(product(WAYS, LENGTHS))

if __name__ == "__main__":
    torch.set_num_threads(1)
    costs = [cost(*kind) for kind in KINDS]
    store(Path(__file__).with_suffix(".json"), "book/data/quadratic_study.py", costs)
