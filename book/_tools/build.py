"""Build the book into _build/html; any warning fails the build."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(root=ROOT):
    """Build what changed. Returns None, or the builder's output when it failed."""
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", "-W", "--keep-going", root]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(build())
