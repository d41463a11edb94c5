# The README's two commands. Both set up everything they need in .venv; nothing is installed outside.
PYTHON ?= python3
VENV   := .venv
QDBENCH := $(VENV)/bin/qdbench

.PHONY: demo check lint types test clean

# Evolve walking ants with MAP-Elites, beside random search, and draw what was found (about a minute).
demo: $(VENV)/ready
	@$(QDBENCH) tasks
	@echo; $(QDBENCH) run ant_omni --algorithm map_elites --algorithm random_search --seeds 0-1 \
	  --evaluations 4000 --episode-length 100 --out results/demo
	@echo; $(QDBENCH) show results/demo/ant_omni/map_elites/seed-0 --out results/demo/archive.png
	@echo; echo "Results are in results/demo: one folder per run, and the picture archive.png."

# Every check: lint, types, tests.
check: lint types test

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/ready
	$(VENV)/bin/mypy

test: $(VENV)/ready
	$(VENV)/bin/pytest

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "qdbench needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) results .pytest_cache .mypy_cache .ruff_cache .hypothesis
