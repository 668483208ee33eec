# `make demo` and `make test` need nothing but Python and make: they set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
EXTRAS := $(VENV)/.extras
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope --no-loadscope-reorder

.PHONY: install extras demo test long lint bench gpu-check torture lowest clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

# Optional packages, whose tests are skipped without them.
extras: $(EXTRAS)

$(EXTRAS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet -c constraints.txt \
		-e '.[dev,rdf,frames,zst,serve,spark,tensorboard,wandb,mlflow,tune,index,browser,clients]'
	touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check lmpnn_kge plugins tests
	$(BIN)/ruff format --check lmpnn_kge plugins tests
	$(BIN)/mypy

test: lint
	$(PYTEST)

# The tests that take long, which CI runs after the others.
long: $(INSTALLED)
	$(PYTEST) -m long

demo: $(INSTALLED)
	$(BIN)/lmpnn-kge demo

bench: $(INSTALLED)
	$(BIN)/python -m tests.benchmarks

# Whether a GPU gives the answers of the CPU, and how fast; DEVICE=cuda:1 for another one.
DEVICE ?= auto
gpu-check: $(INSTALLED)
	$(BIN)/python -m tests.gpu_check --device $(DEVICE)

# Hostile files, kills, full disks and the like; what fails is kept in torture-failures/.
MINUTES ?= 10
SEED ?= 0
torture: $(EXTRAS)
	$(BIN)/python -m tests.torture --minutes $(MINUTES) --seed $(SEED)

# The tests with the lowest versions that pyproject.toml allows; VERSIONS="duckdb==1.4.4" for others.
lowest:
	$(PYTHON) -m tests.lowest $(VERSIONS)

clean:
	rm -rf $(VENV) .venv-lowest dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
