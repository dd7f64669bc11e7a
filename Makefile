# Every target sets up what it needs; see `make help`.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench bench-peers clean

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.stamp

# Tests run in this many processes, each file in one of them; each has a Spark session of its own.
# Files in their order: what takes minutes begins early, and the many quick ones of unit end it.
WORKERS ?= 2
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Make .venv with everything in it, and see to Java
	@bash scripts/ensure_java.sh

$(STAMP): pyproject.toml
	@bash scripts/make_venv.sh $(VENV)
	@touch $@

demo: setup  ## Run the sensor job on local Spark, live in the terminal (about 30 s)
	@$(PY) -m penstock demo

test: setup  ## Run all tests (WORKERS=0: in one process)
	@$(PY) -m pytest $(PARALLEL) $(ARGS)

check: setup  ## Lint, formatting, types, layers
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) -m pytest -q tests/architecture

bench: setup  ## Run the benchmarks
	@$(PY) -m bench

bench-peers: setup  ## The same programs on Penstock and its peers, side by side
	@$(PY) -m bench.peers $(ARGS)

clean:  ## Remove what the targets made, .venv included
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .bench .demo
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
