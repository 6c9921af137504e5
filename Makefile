# make book      install, build, and serve the book on this machine
# make test      install, and check everything
# make site      build only, into _build/html
# make chapters  run every chapter again and rewrite it in its stored form
# make benchmark  our blocks against PyTorch's layer, in time and memory; some minutes
# make clean     remove what was built (make distclean: and .venv)

PORT ?= 8000
PYTEST ?= -n 2 --dist loadfile --no-loadscope-reorder
SETUP = python3 book/_tools/setup.py
VENV_PYTHON = .venv/bin/python

.PHONY: book site test chapters benchmark clean distclean python3

book: python3
	@$(SETUP) book
	@$(VENV_PYTHON) book/_tools/serve.py "$(PORT)"

site: python3
	@$(SETUP) book
	@$(VENV_PYTHON) book/_tools/build.py

test: python3
	@$(SETUP) test
	@$(VENV_PYTHON) -m pytest $(PYTEST)

chapters: python3
	@$(SETUP) book
	@$(VENV_PYTHON) book/_tools/notebooks.py book/*.ipynb

benchmark: python3
	@$(SETUP) book
	@$(VENV_PYTHON) tests/benchmarks/speed.py

clean:
	rm -rf _build .pytest_cache

distclean: clean
	rm -rf .venv

python3:
	@command -v python3 >/dev/null || { echo "No python3 on PATH: install Python 3.11 or newer" \
	  "(Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv)."; exit 1; }
