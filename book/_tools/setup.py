"""Make .venv and install what a task needs: `python3 setup.py book` or `test`.

A second run does nothing unless a file that says what to install has changed.
Standard library only, and no syntax newer than Python 3.4: on a machine whose
python3 is too old this script must still run, to say so.
"""
import hashlib
import os
import shutil
import subprocess
import sys

import browser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
REQUIREMENTS = {"book": "requirements.txt", "test": "tests/requirements.txt"}
INSTALL_FILES = ["requirements.txt", "constraints.txt", "pyproject.toml"]
NAMES = ["python3.11", "python3.12", "python3.13", "python3.14"]
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def stop(message):
    sys.exit("\n" + message + "\n")


def run(*command):
    if subprocess.call(command, cwd=ROOT) != 0:
        stop("This step failed; its message is above:\n  " + " ".join(command))


def find_python():
    """This Python if it is new enough, else a newer one on PATH."""
    if sys.version_info >= (3, 11):
        return sys.executable
    newer = next((path for path in map(shutil.which, NAMES) if path), None)
    return newer or stop(
        "Python 3.11 or newer is needed; python3 here is {}.{}, and none of {} is on\n"
        "PATH. Debian 12 or Ubuntu 24.04: apt-get install python3 python3-venv.\n"
        "macOS: brew install python@3.13. Others: https://www.python.org/downloads"
        .format(sys.version_info[0], sys.version_info[1], ", ".join(NAMES)))


def make_venv(python):
    if os.path.exists(PYTHON):
        return
    if subprocess.call([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL):
        stop(python + " has no venv module. Debian or Ubuntu: apt-get install python3-venv")
    print("Making .venv with " + python, flush=True)
    run(python, "-m", "venv", VENV)


def read(name):
    with open(os.path.join(ROOT, name)) as file:
        return file.read()


def digest(task):
    content = [read(name) for name in INSTALL_FILES + [REQUIREMENTS[task]]]
    return hashlib.sha256("\0".join(content).encode()).hexdigest()


def is_installed(stamp, task):
    return os.path.exists(stamp) and read(stamp) == digest(task)


def pip(*arguments):
    return [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q"] + list(arguments)


def torch_requirement():
    return next(line for line in read("requirements.txt").splitlines() if line.startswith("torch=="))


def has_nvidia():
    return shutil.which("nvidia-smi") is not None or os.path.exists("/proc/driver/nvidia")


def has_torch(requirement):
    code = "import importlib.metadata as m; print(m.version('torch').split('+')[0])"
    found = subprocess.run([PYTHON, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return found.stdout.decode().strip() == requirement.split("==")[1]


def install_cpu_torch():
    """Linux's default wheel brings gigabytes of CUDA: look for the CPU build first."""
    requirement = torch_requirement()
    if not sys.platform.startswith("linux") or has_nvidia() or has_torch(requirement):
        return
    wanted = ["--no-deps", requirement]
    on_disk, cpu_index = ["--no-index"], ["--index-url", CPU_WHEELS, "--retries", "1"]
    for source in (on_disk, cpu_index):
        if subprocess.call(pip(*(wanted + source)), stderr=subprocess.DEVNULL) == 0:
            return
    print("The CPU build of torch could not be had from " + CPU_WHEELS + ":\n"
          "pip's default build follows, which may download CUDA.", flush=True)


def install(task):
    print("Installing what '{}' needs (the first time takes minutes)".format(task), flush=True)
    install_cpu_torch()
    run(*pip("-r", REQUIREMENTS[task], "-c", "constraints.txt"))


def main(task):
    make_venv(find_python())
    stamp = os.path.join(VENV, "installed-" + task)
    if not is_installed(stamp, task):
        install(task)
        with open(stamp, "w") as file:
            file.write(digest(task))
    if task == "test":
        browser.require(PYTHON)


if __name__ == "__main__":
    main(sys.argv[1])
