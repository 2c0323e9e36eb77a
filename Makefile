PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CHECKED := src tests examples benchmarks evidence docs release conftest.py
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.DEFAULT_GOAL := help
.PHONY: help setup spark run test quick sweep mutants check bench evidence notebooks gallery docs pictures release clean

help:  ## list what one can do here
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: .venv/.ready  ## make .venv and install everything (the others call it)

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (about a minute, once) ..." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

# Half a gigabyte on the disk, and half a minute to unpack: only its own tests need it.
spark: .venv/.spark  ## add pyspark to .venv, for the tests of the engine on Spark (they need Java, too)

.venv/.spark: .venv/.ready
	@echo "Adding pyspark to .venv (460 MB, once) ..." >&2
	@$(PIP) install --constraint constraints.txt --editable '.[spark]'
	@touch $@

run: setup  ## a live private running count: shuffler, analyzer and thousands of encrypted reports, with a picture
	@$(BIN)/shuffledp demo --folder build/live

# One BLAS thread a process, as pytest has a worker for every core; and nobody compiles the package twice.
test quick sweep check evidence: export OPENBLAS_NUM_THREADS = 1
test quick sweep check evidence: export OMP_NUM_THREADS = 1
test quick sweep check evidence: export PYTHONDONTWRITEBYTECODE =

# mypy works beside the tests, and has its say at the end: on a new checkout it takes half a minute.
test: setup spark  ## the whole suite, with the checks: at most 15 minutes on 2 cores
	$(BIN)/ruff check --quiet $(CHECKED)
	$(BIN)/lint-imports
	@mkdir -p build; $(BIN)/mypy > build/mypy.txt 2>&1 & types=$$!; \
	$(BIN)/pytest --numprocesses auto --dist worksteal; tests=$$?; \
	wait $$types; typed=$$?; cat build/mypy.txt; exit $$((tests > typed ? tests : typed))

quick: setup  ## ruff, import-linter and the tests that are not in tests/slow.txt: about a minute, for whoever is working
	$(BIN)/ruff check --quiet $(CHECKED)
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses auto --dist worksteal -m 'not slow'

sweep: setup spark  ## cases that take the same road as another with other numbers, before a release
	$(BIN)/pytest --numprocesses auto --dist worksteal --sweep tests

mutants: setup spark  ## wrong twins of the code, each of which the suite must refuse; ONLY=name for one or one room
	$(BIN)/python tests/mutants/run.py $(if $(ONLY),--only $(ONLY))

check: setup  ## ruff, mypy --strict, import-linter, doctests
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses auto --dist worksteal src evidence README.md docs

bench: setup spark  ## speed and error as ratios in one run; writes build/bench/*.json
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
	$(BIN)/python benchmarks/spark.py

docs: notebooks  ## the documentation site into build/docs/html, with every warning an error and every link followed
	PYTHONPATH=docs $(BIN)/python -m builder.build

evidence: setup  ## every claim measured again on this machine, a page in build/evidence; QUICK=1 for two minutes, SEED=n
	$(BIN)/python -m evidence $(if $(QUICK),--quick) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only '$(ONLY)')

notebooks: setup  ## run docs/notebooks and write them with their outputs, as .ipynb and .md, to build/notebooks
	$(BIN)/python docs/notebooks/execute.py

gallery: setup  ## run the papers' figures and tables again and write docs/gallery.md: some minutes
	$(BIN)/python docs/gallery/draw.py

pictures: setup  ## draw the pictures in docs again
	$(BIN)/python docs/pictures/draw.py

release: setup  ## wheel and sdist, built twice with one hash, checked, with an SBOM and checksums, into dist
	@$(PIP) install --constraint constraints.txt --editable '.[release]'
	@$(BIN)/python release/make.py

clean:  ## remove what the other targets made
	rm -rf .venv build dist __pycache__ .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find $(CHECKED) -name __pycache__ -prune -exec rm -rf {} +
