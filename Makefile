# The two commands of the README. They install everything they need into .venv, and nothing outside.
PYTHON ?= python3
VENV   := .venv
QDBENCH := $(VENV)/bin/qdbench

.PHONY: demo check lint types docs test references-check fuzz clean

# Two algorithms on a walking robot, at quick scale: runs, corrections, the table beside the reference results,
# an archive, the paper's findings (about two minutes on two cores).
DEMO := results/demo
demo: $(VENV)/ready
	@$(QDBENCH) tasks
	@echo; $(QDBENCH) suite map_elites random_search --tasks walker_uni --seeds 0-2 --out $(DEMO)
	@echo; $(QDBENCH) show $(DEMO)/runs/walker_uni/map_elites/seed-0 --out $(DEMO)/archive.png
	@echo; $(QDBENCH) references findings
	@echo; echo "Results are in $(DEMO): open report.html to watch the robots walk; archive.png is one archive, runs/ has all data."

# Every check: lint, types and documentation at the same time, then the tests.
check: $(VENV)/ready
	$(MAKE) --jobs=3 --output-sync=target lint types docs
	$(MAKE) test

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/ready
	$(VENV)/bin/mypy

# Build the documentation into site/. A broken link or a public name without a docstring fails.
docs: $(VENV)/ready
	$(VENV)/bin/pytest tests/test_site.py
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

test: $(VENV)/ready
	$(VENV)/bin/pytest -m "not alone" --numprocesses auto --dist loadfile --no-loadscope-reorder
	$(VENV)/bin/pytest -m alone

# One run of every task at quick scale, made again: it equals the shipped reference results.
references-check: $(VENV)/ready
	QDBENCH_REFERENCES=all $(VENV)/bin/pytest tests/test_shipped_references.py

# Files damaged, forged and swapped at random, for half an hour, then calls and commands with odd arguments,
# as long again; fails if one does more than be refused.
FUZZ_SECONDS ?= 1800
FUZZ_SEED ?= 1
fuzz: $(VENV)/ready
	$(VENV)/bin/python tests/fuzz_files.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) $(VENV)/bin/python tests/fuzz_calls.py

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "qdbench needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) results site .pytest_cache .mypy_cache .ruff_cache .hypothesis
