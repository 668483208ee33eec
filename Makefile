# `make demo` and `make test` need nothing but Python and make: they set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
EXTRAS := $(VENV)/.extras

.PHONY: install extras demo test lint bench clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

# Optional packages, whose tests are skipped without them.
extras: $(EXTRAS)

$(EXTRAS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,rdf,frames,zst]'
	touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check lmpnn_kge plugins tests
	$(BIN)/ruff format --check lmpnn_kge plugins tests
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope

demo: $(INSTALLED)
	$(BIN)/lmpnn-kge demo

bench: $(INSTALLED)
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
