# `make` reproduces the study that config.yaml describes; `make test` checks the project. Both first install into .venv,
# again only when the requirements have changed.

CORES ?= all
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/installed

# The rules call `python`, which must be the one of the environment.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: reproduce test

reproduce: $(INSTALLED)
	$(VENV)/bin/snakemake --cores $(CORES)

test: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/snakefmt --check Snakefile workflow
	$(VENV)/bin/snakemake --lint
	$(VENV)/bin/pytest

# pip of $(PYTHON) installs into the environment, so that Python's own ensurepip, which some systems leave out, is not needed.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv --clear --without-pip $(VENV)
	$(PYTHON) -m pip --python $(VENV)/bin/python install -c constraints.txt -e '.[test]'
	touch $@
