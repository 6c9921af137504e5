"""Makes depth_study.json: every structure, first values, loss and depth, five seeds each. Run it as

    python book/data/depth_study.py
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.depth import LOSSES, summarise
from oneblock.stacks import INITS, STRUCTURES
from oneblock.stored import store

DEPTHS = (1, 2, 4, 8, 16, 32, 64)

if __name__ == "__main__":
    torch.set_num_threads(1)
    kinds = product(STRUCTURES, INITS, LOSSES, DEPTHS)
    summaries = [summarise(structure, K, init, loss) for structure, init, loss, K in kinds]
    store(Path(__file__).with_suffix(".json"), "book/data/depth_study.py", summaries)
