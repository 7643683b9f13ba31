# The whole contributor interface. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup run test test-long check docs clean

# The core alone: what a first run needs.
$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

# The core, the environments and tools that tests use.
$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[atari,mujoco,box2d,minigrid,dev]'
	touch $@

# Every extra but envpool (large).
setup: $(VENV)/.dev
	$(PIP) -e '.[all,dev]'

run: $(VENV)/.core
	$(BIN)/penstock train CartPole-v1

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not long" -n 2 --dist worksteal

test-long: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --timeout=1800

check: $(VENV)/.dev
	$(BIN)/ruff format --check src tests
	$(BIN)/ruff check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/house/size_report.py

docs: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/docs

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
