"""Checks of what is done with a model: predict, take a loss, take a step, compare two structures."""
