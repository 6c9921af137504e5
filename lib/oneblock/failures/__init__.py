"""Where a block fails, each failure a small experiment that can be repeated."""
