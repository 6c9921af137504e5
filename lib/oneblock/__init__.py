"""The library behind the book: one Transformer block with every number in view."""
