"""Settings of every test: one thread, and the seconds each part takes."""
import os
from collections import Counter

# Before torch is imported, and inherited by the kernels that run the chapters:
# long sums differ in their last digits with the number of threads.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")


def part_of(nodeid):
    """`tests/site/test_site.py::test_x` belongs to `tests/site`."""
    return os.path.dirname(nodeid.split("::")[0])


def pytest_terminal_summary(terminalreporter):
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                seconds[part_of(report.nodeid)] += report.duration
    terminalreporter.section("seconds of each part")
    for part, total in sorted(seconds.items()):
        terminalreporter.line(f"{total:7.1f}  {part}")
