"""Settings of every test: one thread, checked signatures, the long files first, and a summary of what was measured."""
import os
from collections import Counter

from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

# Before torch is imported, and inherited by the kernels that run the chapters:
# long sums differ in their last digits with the number of threads.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

# Before the library is imported, by whichever test. A whole number is a fine float: eps=0.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
install_import_hook("oneblock", f"{__name__}.checked")

# Two workers take one file after the other; a long one at the end would leave one of them idle.
# The site is built for the first; the second file needs none, and runs meanwhile.
ORDER = ["tests/site/test_chapters.py", "tests/site/test_live.py", "tests/site/test_site.py", "book/", "tests/site/", ""]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: next(k for k, start in enumerate(ORDER) if item.nodeid.startswith(start)))


def part_of(nodeid):
    """`tests/site/test_site.py::test_x` belongs to `tests/site`."""
    return os.path.dirname(nodeid.split("::")[0])


def pytest_terminal_summary(terminalreporter):
    """The seconds of each part, and what tests gave to `record_property`."""
    kept = [one for some in terminalreporter.stats.values() for one in some if hasattr(one, "duration")]
    seconds = Counter()
    terminalreporter.section("measured")
    for report in kept:
        seconds[part_of(report.nodeid)] += report.duration
        for name, value in report.user_properties if report.when == "call" else []:
            terminalreporter.line(f"{value:>12,}  {name}")
    for part, total in sorted(seconds.items()):
        terminalreporter.line(f"{total:12.1f}  seconds for {part}")
