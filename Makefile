PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CHECKED := src tests examples benchmarks docs conftest.py
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.DEFAULT_GOAL := help
.PHONY: help setup run test quick sweep mutants check bench pictures clean

help:  ## list what one can do here
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: .venv/.ready  ## make .venv and install everything (the others call it)

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (about a minute, once) ..." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: setup  ## a live private running count: shuffler, analyzer and thousands of encrypted reports, with a picture
	@$(BIN)/shuffledp demo --folder build/live

# One BLAS thread a process, as pytest has a worker for every core; and nobody compiles the package twice.
test quick sweep check: export OPENBLAS_NUM_THREADS = 1
test quick sweep check: export OMP_NUM_THREADS = 1
test quick sweep check: export PYTHONDONTWRITEBYTECODE =

# mypy works beside the tests, and has its say at the end: on a new checkout it takes half a minute.
test: setup  ## the whole suite, with the checks: at most 15 minutes on 2 cores
	$(BIN)/ruff check --quiet $(CHECKED)
	$(BIN)/lint-imports
	@mkdir -p build; $(BIN)/mypy > build/mypy.txt 2>&1 & types=$$!; \
	$(BIN)/pytest --numprocesses auto --dist worksteal; tests=$$?; \
	wait $$types; typed=$$?; cat build/mypy.txt; exit $$((tests > typed ? tests : typed))

quick: setup  ## ruff, import-linter and the tests that are not in tests/slow.txt: about a minute, for whoever is working
	$(BIN)/ruff check --quiet $(CHECKED)
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses auto --dist worksteal -m 'not slow'

sweep: setup  ## cases that take the same road as another with other numbers, before a release
	$(BIN)/pytest --numprocesses auto --dist worksteal --sweep tests

mutants: setup  ## wrong twins of the code, each of which the suite must refuse; ONLY=name for one or one room
	$(BIN)/python tests/mutants/run.py $(if $(ONLY),--only $(ONLY))

check: setup  ## ruff, mypy --strict, import-linter, doctests
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses auto --dist worksteal src README.md docs

bench: setup  ## speed and error as ratios in one run; writes build/bench/*.json
	$(BIN)/python benchmarks/first_hour.py
	$(BIN)/python benchmarks/foundation.py
	$(BIN)/python benchmarks/binary_sums.py
	$(BIN)/python benchmarks/sums.py
	$(BIN)/python benchmarks/histograms.py
	$(BIN)/python benchmarks/people.py
	$(BIN)/python benchmarks/ab_tests.py
	$(BIN)/python benchmarks/extremes.py
	$(BIN)/python benchmarks/distribution_tests.py
	$(BIN)/python benchmarks/ranges.py
	$(BIN)/python benchmarks/running_counts.py
	$(BIN)/python benchmarks/carried_noise.py
	$(BIN)/python benchmarks/bandits.py
	$(BIN)/python benchmarks/off_policy.py
	$(BIN)/python benchmarks/convex.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/learned_or_noise.py
	$(BIN)/python benchmarks/real_tables.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/admission.py
	$(BIN)/python benchmarks/oblivious.py
	$(BIN)/python benchmarks/sizing.py
	$(BIN)/python benchmarks/large_batches.py
	$(BIN)/python benchmarks/cascade.py --kills 10
	$(BIN)/python benchmarks/live_learning.py
	$(BIN)/python benchmarks/browsers.py

pictures: setup  ## draw the pictures in docs again
	$(BIN)/python docs/pictures/draw.py

clean:  ## remove what the other targets made
	rm -rf .venv build dist __pycache__ .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find $(CHECKED) -name __pycache__ -prune -exec rm -rf {} +
