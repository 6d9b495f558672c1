# Two commands do everything on a machine with python3 (3.11+) and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

.PHONY: demo test check format bench fuzz docs clean

demo: $(READY)  ## fit the Connect4 table, compare, sample, report
	$(BIN)/tessella demo

test: $(READY)  ## every test and every example in the documentation
	$(BIN)/python -m pytest

check: $(READY)  ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## ratios against the paper's form, written to results/
	$(BIN)/python -m benchmarks.cell_layer

fuzz: $(READY)  ## a thousand random changes each of saved models, runs and overviews: used, or refused in a line
	TESSELLA_FUZZ=1000 $(BIN)/python -m pytest -n 0 tests/edges/test_folder_fuzz.py

docs: $(DOCS_READY)  ## the documentation site, in docs/_build/html; every warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf $(VENV) demo-report docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	touch $(DOCS_READY)
