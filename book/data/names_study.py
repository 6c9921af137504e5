"""Makes names_study.json: the classifier of names against a bag of words, three seeds each. Run it as

    python book/data/names_study.py
"""

from itertools import product
from pathlib import Path

import torch

from oneblock.naming import FAMILIES, trial
from oneblock.stored import store

SEEDS = range(3)
VOCABULARIES = [{"at_least": at_least} for at_least in (100, 1, 50)]
SPLITS = [{"family": family} for family in FAMILIES[1:]]
SIZES = [{"fraction": fraction} for fraction in (1 / 8, 1 / 4, 1 / 2)]
SETTINGS = VOCABULARIES + SPLITS + SIZES + [{"D": 64}]

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    trials = [trial(**setting, seed=seed) for setting, seed in product(SETTINGS, SEEDS)]
    store(Path(__file__).with_suffix(".json"), "book/data/names_study.py", trials)
