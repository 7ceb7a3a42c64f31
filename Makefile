# `make` reproduces the study that config.yaml describes; `make test` checks the project. Both first install into .venv,
# again only when the requirements have changed.

CORES ?= all
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/installed

.PHONY: reproduce reference test

# The rules call `python`, which must be the one of the environment.
reproduce: $(INSTALLED)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES)

# The studies that docs/reference/ keeps: hours on a workstation, and killed and started again as often as you like. The last
# needs Debian or Ubuntu with network, and spaCy.
KEEP = $(VENV)/bin/python -m specialized_heads.report.keep --results results/$(1) --output docs/reference/$(1)

reference: reproduce
	$(call KEEP,default)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/pruning.yaml
	$(call KEEP,pruning)
	$(PYTHON) -m pip --python $(VENV)/bin/python install -q -c constraints.txt -e '.[spacy]'
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/domains.yaml
	$(call KEEP,domains)

test: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/snakefmt --check Snakefile workflow
	$(VENV)/bin/snakemake --lint
	$(VENV)/bin/pytest

# The pip of $(PYTHON) installs into the environment: Python's own ensurepip is missing on some systems.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; try: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear --without-pip $(VENV)
	$(PYTHON) -m pip --python $(VENV)/bin/python install -c constraints.txt -e '.[test]'
	touch $@
