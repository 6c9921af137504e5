"""A real JupyterLab on a copy of the chapters, with settings and folders of its own."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

BOOK = Path(__file__).parents[2] / "book"
TOKEN = "test"
OPTIONS = [
    "--no-browser",
    "--allow-root",
    "--ServerApp.port=0",
    f"--IdentityProvider.token={TOKEN}",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.extension_manager=readonly",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.news_url=None",
]
TRACKER = "lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"


class Lab:
    """Runs until ``close``; ``url`` has no slash at its end."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(BOOK, folder / "book", ignore=shutil.ignore_patterns("_*"))
        settings = folder / "config" / TRACKER
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"windowingMode": "none"}))  # cells out of sight are on the page too
        self.log = (folder / "log.txt").open("w")
        command = [sys.executable, "-m", "jupyterlab", *OPTIONS, f"--ServerApp.root_dir={folder}/book"]
        self.process = subprocess.Popen(command, env=self.environment(), stdout=self.log, stderr=self.log, cwd=folder)
        self.url = self.wait_for_address()

    def environment(self):
        own = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "run", "IPYTHONDIR": "ipython", "HOME": "home"}
        return {**os.environ, **{name: str(self.folder / path) for name, path in own.items()}}

    def wait_for_address(self):
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            for found in self.folder.glob("run/jpserver-*.json"):
                text = found.read_text()
                if text.endswith("}"):
                    return json.loads(text)["url"].rstrip("/")
            time.sleep(0.1)
        self.close()
        raise RuntimeError((self.folder / "log.txt").read_text())

    def request(self, method, path):
        with urlopen(Request(f"{self.url}/api/{path}?token={TOKEN}", method=method), timeout=30) as reply:
            return json.loads(reply.read() or "null")

    def open(self, page, notebook):
        """Opens a notebook, runs all its cells and waits until the kernel is idle again."""
        page.goto(f"{self.url}/lab/workspaces/test/tree/{notebook}?token={TOKEN}&reset")
        page.wait_for_function(IDLE, timeout=60_000)
        assert page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')") is not False
        page.wait_for_function(IDLE, timeout=60_000)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


IDLE = """() => {
    const context = window.jupyterapp?.shell?.currentWidget?.context;
    return context?.isReady && context.sessionContext.isReady && context.sessionContext.session?.kernel?.status === "idle";
}"""
