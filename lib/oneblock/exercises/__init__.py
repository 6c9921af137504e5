"""Questions with choices, and checks of functions that a reader writes. Plain HTML and text: nothing here needs a script."""

from oneblock.exercises.catalogue import EXERCISES
from oneblock.exercises.checker import Verdict, check
from oneblock.exercises.quiz import Quiz

__all__ = ["EXERCISES", "Quiz", "Verdict", "check"]
