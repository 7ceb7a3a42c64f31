# `make` reproduces the study in config.yaml. `make test` runs linters, unit tests and the smoke experiment; `make test-all`
# runs all other tests. Each first installs into .venv if the requirements have changed.

CORES ?= all
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/installed

.PHONY: reproduce reference test test-all

# The rules call `python`, so the environment must come first in PATH.
reproduce: $(INSTALLED)
	$(VENV)/bin/specialized-heads estimate config.yaml
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES)

# The main studies kept in docs/reference/. They take two hours on two cores and can be interrupted and resumed at any time.
KEEP = $(VENV)/bin/python -m specialized_heads.report.keep --results results/$(1) --output docs/reference/$(1)

reference: reproduce
	$(call KEEP,default)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/pruning.yaml
	$(call KEEP,pruning)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/bert_small.yaml
	$(call KEEP,bert_small)

# Two workers; the tests of one file share a worker, and with it their fixtures.
PYTEST := $(VENV)/bin/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20

test: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/snakefmt --check Snakefile workflow
	$(VENV)/bin/snakemake --lint
	$(PYTEST) -m "not slow"

test-all: $(INSTALLED)
	$(PYTEST) -m slow

# $(PYTHON)'s pip installs into the environment, because some systems lack ensurepip.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; try: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear --without-pip $(VENV)
	$(PYTHON) -m pip --python $(VENV)/bin/python install -c constraints.txt -e '.[test]'
	touch $@
