"""Sphinx extension: the buttons that need the repository's address.

The address comes from `repository.url` in _config.yml, or else from the git
remote `origin`. When neither gives one, the buttons are left out.
"""
import re
import subprocess

# https://host/owner/name.git, ssh://git@host/owner/name or git@host:owner/name.
# A user name or token before the @ is not kept.
REMOTE = re.compile(
    r"(?:(?:https?|ssh)://)?(?:[^@/\s]+@)?"
    r"(?P<host>[\w.-]*(?:github|gitlab)[\w.-]*)(?::\d+/|[:/])"
    r"(?P<path>[\w.-]+(?:/[\w.-]+)*?/[\w.-]+?)(?:\.git)?/?")


def web_address(remote):
    """The web page of a GitHub or GitLab remote; None for any other remote."""
    found = REMOTE.fullmatch(remote.strip())
    return f"https://{found['host']}/{found['path']}" if found else None


def git_remote(folder):
    command = ["git", "-C", str(folder), "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:  # no git on this machine
        return ""


def set_buttons(app, config):
    options = config.html_theme_options
    address = options.get("repository_url") or web_address(git_remote(app.confdir))
    options["repository_url"] = address or ""
    options["use_repository_button"] = bool(address)
    if not address:
        options["launch_buttons"] = {}


def setup(app):
    app.connect("config-inited", set_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
