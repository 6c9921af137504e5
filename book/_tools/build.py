"""Build the book into _build/html; any warning fails the build."""
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def forget(root):
    """A page that is not read again does not warn again: start from nothing."""
    shutil.rmtree(root / "_build" / ".doctrees", ignore_errors=True)


def build(root=ROOT):
    """Build what changed. Returns None, or the builder's output when it failed."""
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", "-W", "--keep-going", root]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    forget(root)
    return done.stdout + done.stderr


def main():
    problem = build()
    if problem is None:
        print("Built", ROOT / "_build" / "html")
    return problem


if __name__ == "__main__":
    sys.exit(main())
