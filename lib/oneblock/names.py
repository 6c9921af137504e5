"""Names of characters and their categories: real text, with classes, that every Python carries.

``LATIN SMALL LETTER A`` is ``Ll``, a lower-case letter; ``DIGIT FIVE`` is ``Nd``, a decimal digit. The names are
those of Unicode 3.2, which Python keeps unchanged beside the newest.
"""

import random
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from oneblock.errors import ArgumentError, check_number, check_size

PADDING, UNKNOWN = 0, 1
SPELT_BY_NUMBER = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HANGUL SYLLABLE", "YI SYLLABLE")
"""How the names begin that a rule makes, such as ``CJK UNIFIED IDEOGRAPH-4E00``: they are no text."""


CATEGORIES = {
    "Lu": "upper-case letter",
    "Ll": "lower-case letter",
    "Lt": "title-case letter",
    "Lm": "modifier letter",
    "Lo": "other letter",
    "Mn": "mark without a width",
    "Mc": "mark with a width",
    "Me": "enclosing mark",
    "Nd": "decimal digit",
    "Nl": "number that is a letter",
    "No": "other number",
    "Pc": "joining punctuation",
    "Pd": "dash",
    "Ps": "opening punctuation",
    "Pe": "closing punctuation",
    "Pi": "opening quotation mark",
    "Pf": "closing quotation mark",
    "Po": "other punctuation",
    "Sm": "mathematical symbol",
    "Sc": "currency symbol",
    "Sk": "modifier symbol",
    "So": "other symbol",
    "Zs": "space",
    "Zl": "line separator",
    "Zp": "paragraph separator",
    "Cf": "format character",
}
"""What the general categories of the names mean, after table 4-4 of *The Unicode Standard*."""


class Name(NamedTuple):
    """A character's name and its general category, two letters such as ``Lu``."""

    text: str
    category: str


def unicode_names() -> list[Name]:
    """The 11,721 names of Unicode 3.2 that are text, in the order of their characters.

    Source: ``unicodedata.ucd_3_2_0``; *The Unicode Standard*, section 4.5 on categories, 4.8 on names.
    """
    ucd = unicodedata.ucd_3_2_0
    characters = map(chr, range(sys.maxunicode + 1))
    named = ((ucd.name(one, ""), one) for one in characters)
    return [Name(text, ucd.category(one)) for text, one in named if text and not text.startswith(SPELT_BY_NUMBER)]


def itself(text: str) -> str:
    """Every name is a family of its own."""
    return text


def both_cases(text: str) -> str:
    """One family for ``LATIN CAPITAL LETTER A`` and ``LATIN SMALL LETTER A``."""
    return " ".join("CAPITAL-OR-SMALL" if word in ("CAPITAL", "SMALL") else word for word in text.split())


def split(
    names: Iterable[Name], share: float = 0.2, seed: int = 0, family: Callable[[str], str] = itself
) -> tuple[list[Name], list[Name]]:
    """Training and validation names, drawn at random; no family is in both, and so no name.

    Args:
        names: the same list and seed always give the same parts, whatever the list's order.
        share: of the names, about, that go to validation, between 0 and 1.
        family: names with the same ``family(text)`` stay together.
    Raises:
        ArgumentError: ``share`` is not between 0 and 1.
    """
    check_number("share", share, "a number between 0 and 1", lambda number: 0 < number < 1)
    families = defaultdict(list)
    for name in sorted(names):
        families[family(name.text)].append(name)
    drawn = sorted(families)
    random.Random(seed).shuffle(drawn)
    due, validation, training = share * sum(map(len, families.values())), [], []
    for key in drawn:
        (validation if len(validation) + len(families[key]) <= due else training).extend(families[key])
    return training, validation


def one_word_away(texts: Sequence[str], others: Iterable[str]) -> list[bool]:
    """For each text, whether one of the others has as many words and differs in exactly one of them."""
    others = set(others)
    known = Counter(gap for other in others for gap in _gaps(other))
    own = others & set(texts)  # a text differs from itself in none
    return [any(known[gap] > (text in own) for gap in _gaps(text)) for text in texts]


def _gaps(text: str) -> list[tuple[str, ...]]:
    words = text.split()
    return [(*words[:k], "", *words[k + 1 :]) for k in range(len(words))]


class Vocabulary:
    """Words and their ids: 0 is padding, 1 an unknown word, the others follow in alphabetical order.

    Args:
        texts: of the training part only; a word that is only in the validation part is unknown.
        at_least: how many times a word has to occur to get an id of its own.
    Raises:
        ArgumentError: ``texts`` is a single text or not of texts, ``at_least`` is not a whole number ≥ 1.
    """

    def __init__(self, texts: Iterable[str], at_least: int = 1) -> None:
        check_size("at_least", at_least)
        counts = Counter(word for text in _texts(texts) for word in words_of(text))
        self.words = ("", "?", *sorted(word for word, count in counts.items() if count >= at_least))
        self._ids = {word: k for k, word in enumerate(self.words) if k > UNKNOWN}

    def __len__(self) -> int:
        return len(self.words)

    def known(self, word: str) -> bool:
        """Whether a word has an id of its own."""
        return word in self._ids

    def encode(self, texts: Iterable[str], L: int) -> Int[Tensor, "N L"]:
        """The ids of the words of each text, with padding behind them, int64 ``[N, L]``.

        Raises:
            ArgumentError: there is no text; one is no ``str``, has no word, or has more than L.
        """
        check_size("L", L)
        rows = [[self._ids.get(word, UNKNOWN) for word in words_of(text, L)] for text in _texts(texts)]
        if not rows:
            raise ArgumentError("texts", "one text or more", rows)
        return torch.tensor([row + [PADDING] * (L - len(row)) for row in rows])


def words_of(text: str, L: int | None = None) -> list[str]:
    """The words of a text, in capitals as the names are; refuses a text without one, or with more than L."""
    if not isinstance(text, str):
        raise ArgumentError("text", "a str", text, "a text is one string, with spaces between its words")
    words = text.upper().split()
    if not words:
        raise ArgumentError("text", "of one word or more", text)
    if L is not None and len(words) > L:
        raise ArgumentError("text", f"of at most {L} words, as there are positions", f"{len(words)} words")
    return words


def _texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ArgumentError("texts", "a list of texts", texts, "put a single text in a list")
    return list(texts)


def valid(token_ids: Int[Tensor, "N L"]) -> Bool[Tensor, "N L"]:
    """``valid_tokens``: True where an id is that of a word, known or not."""
    return token_ids != PADDING


def numbered(names: Iterable[Name], categories: Sequence[str]) -> Int[Tensor, " N"]:
    """The class of each name: the place of its category in the list.

    Raises:
        ArgumentError: a name has a category that is not in the list.
    """
    names = list(names)
    missing = sorted({name.category for name in names} - set(categories))
    if missing:
        raise ArgumentError("categories", f"a list with {', '.join(missing)}, which the names have", list(categories))
    return torch.tensor([categories.index(name.category) for name in names], dtype=torch.int64)
