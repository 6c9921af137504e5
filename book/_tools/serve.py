"""Build the book and serve it on this machine only: `python serve.py 8000`."""
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import build

HTML = Path(__file__).parents[2] / "_build" / "html"


class Handler(SimpleHTTPRequestHandler):
    """Asks the browser to check each file again, so that a rebuild is seen."""

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_):
        """Quiet: the address is all that a reader needs."""


def make_server(port, folder=HTML):
    return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=folder))


def port_of(text):
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        sys.exit(f"PORT is a whole number from 1 to 65535, not {text!r}. For example: make book PORT=8000")
    return int(text)


def another(port):
    """The next port; 8000 where that is none, or needs rights as those below 1024 do."""
    return port + 1 if 1024 <= port < 65535 else 8000


def main(text):
    """The port comes first: when it is taken, nobody waits for a build to be told."""
    port = port_of(text)
    try:
        server = make_server(port)
    except OSError as error:
        sys.exit(f"Port {port} cannot be had ({error.strerror}). Choose another: make book PORT={another(port)}")
    problem = build.main()
    if problem:
        sys.exit(problem)
    print(f"The book is at http://127.0.0.1:{server.server_port}/  (Ctrl+C stops it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main(sys.argv[1])
