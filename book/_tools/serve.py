"""Serve the built book on this machine only: `python serve.py 8000`."""
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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


def main(port):
    try:
        server = make_server(port)
    except OSError as error:
        sys.exit(f"Port {port} cannot be had ({error.strerror}). Choose another: make book PORT={port + 1}")
    print(f"The book is at http://127.0.0.1:{server.server_port}/  (Ctrl+C stops it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
