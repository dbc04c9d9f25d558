# Two commands do everything: `make demo` and `make test`. Both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The byte code of the tests is written once, and not by each worker and each program that a test starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test bench trials lock format clean

demo: $(VENV)/.run
	@$(BIN)/ferrule demo

test: $(VENV)/.dev
	@$(BIN)/python scripts/provide.py
	@echo "format" && $(BIN)/ruff format --check --quiet .
	@echo "lint" && $(BIN)/ruff check --quiet .
	@echo "types" && $(BIN)/mypy --no-error-summary
	@echo "layers" && $(BIN)/lint-imports --no-cache > $(VENV)/layers.txt || (cat $(VENV)/layers.txt; exit 1)
	@echo "tests" && $(BIN)/pytest

bench: $(VENV)/.dev
	@$(BIN)/python -m bench

# Everyday work and attacks, whole: fetches packages and programs into .trials and writes bench/TRIALS.md.
# `make trials NAMES="git web"` runs some of them.
trials: $(VENV)/.dev
	@$(BIN)/python scripts/provide.py
	@$(BIN)/python -m trials $(NAMES)

# Rewrites the hashed locks from pyproject.toml; no index address is written into them. The wheels of claude-agent-sdk have a
# program of 370 MB in them that no test needs, so its source is taken.
lock: $(VENV)/.dev
	$(PIP) install uv
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet --upgrade \
	  pyproject.toml --extra all --group build -o requirements/run.txt
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet --upgrade \
	  --no-binary claude-agent-sdk --emit-build-options \
	  pyproject.toml --extra all --extra local --group build --group dev --group oracles --group node -o requirements/dev.txt

format: $(VENV)/.dev
	$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

# Byte code is compiled at install: the first start is then as fast as the second.
$(VENV)/.run: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || (echo "Ferrule needs Python 3.11 or later: make PYTHON=python3.11"; exit 1)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@$(PIP) install --no-build-isolation --require-hashes -r requirements/dev.txt
	@touch $@

clean:
	rm -rf $(VENV) .trials .mypy_cache .ruff_cache .pytest_cache .hypothesis
