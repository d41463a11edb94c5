# The README's two commands. Both set up everything they need in .venv; nothing is installed outside.
PYTHON ?= python3
VENV   := .venv
QDBENCH := $(VENV)/bin/qdbench
TASKS  := hopper_uni walker_uni halfcheetah_uni ant_uni humanoid_uni hexapod_uni ant_omni humanoid_omni hexapod_omni

.PHONY: demo check lint types test clean

# Evaluate random controllers on all nine tasks and draw one of them walking (about a minute).
demo: $(VENV)/ready
	@mkdir -p results/demo
	@$(QDBENCH) tasks
	@for task in $(TASKS); do \
	  echo; $(QDBENCH) evaluate $$task --random 256 --episode-length 250 --out results/demo/$$task.npz || exit $$?; \
	done
	@echo; $(QDBENCH) rollout halfcheetah_uni --random 256 --episode-length 250 --out results/demo/halfcheetah.png
	@echo; echo "Results are in results/demo: all numbers per task (.npz) and a picture of the fittest half-cheetah."

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
