# `make` reproduces the study in config.yaml. `make test` runs linters, unit tests and the smoke
# experiment; `make test-all` runs all other tests, and `make test-kernels` the first ones again as
# other processors compute. Each first installs what it needs into .venv if the requirements have
# changed. `make install EXTRAS=stanza,models` installs optional packages too.

CORES ?= all
PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/installed
TESTED := $(VENV)/installed-tests
# A Python that is not the environment's, for the environment may be active and made anew; and one
# that has pip, where possible.
OUTSIDE = $(shell $(PYTHON) -c 'import importlib.util, os, sys; own = os.path.realpath(sys.prefix) == os.path.realpath("$(VENV)"); \
	print(sys._base_executable if own or not importlib.util.find_spec("pip") else sys.executable)')
# Its pip installs into the environment, because some systems lack ensurepip.
PIP = $(OUTSIDE) -m pip --python $(VENV)/bin/python install -c constraints.txt
# Whatever the locale, and in every job.
export PYTHONUTF8 = 1

.PHONY: reproduce install reference test test-all test-kernels

# The rules call `python`, so the environment must come first in PATH.
reproduce: $(INSTALLED)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES)

# The main studies kept in docs/reference/, and the verdict on every claim. They take about 31 hours
# on two cores, 20 of them for long_pruning, and can be interrupted and resumed at any time. Of a
# study are kept its data, its configuration, and the figures and tables that pages link to.
LINKED = tables/environment $(shell grep -ohP "(?<!results/)\b$(1)/(figures|tables)/\w+" *.md */*.md docs/*/*.md | cut -d/ -f2- | sort -u)
KEPT = configuration.yaml claims.md claims.csv data/*.parquet $(LINKED:%=%.csv) \
	$(patsubst %,%.png,$(filter figures/%,$(LINKED))) $(patsubst %,%.md,$(filter tables/%,$(LINKED)))
KEEP = cd results/$(1) && ls $(KEPT) >/dev/null && rm -rf ../../docs/reference/$(1) && mkdir ../../docs/reference/$(1) \
	&& cp --parents $(KEPT) ../../docs/reference/$(1)

reference: reproduce
	$(call KEEP,default)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/bert_small.yaml
	$(call KEEP,bert_small)
	$(VENV)/bin/python resources/fetch_minilm.py
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/minilm.yaml
	$(call KEEP,minilm)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/studies/long_pruning.yaml
	$(call KEEP,long_pruning)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/studies/long_pruning_en_fr.yaml
	$(call KEEP,long_pruning_en_fr)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/studies/equal_depth.yaml
	$(call KEEP,equal_depth)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) --configfile config/studies/equal_schedules.yaml
	$(call KEEP,equal_schedules)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" snakemake --cores $(CORES) results/one_decay/tables/models.md \
		--configfile config/studies/one_decay.yaml
	mkdir -p docs/reference/one_decay/tables && cp results/one_decay/tables/models.csv results/one_decay/tables/models.md docs/reference/one_decay/tables
	$(VENV)/bin/specialized-heads claims docs/reference/*/data --notes docs/reference/claims_notes.csv --output docs/reference/evidence

# Two workers; the tests of one file share a worker, and with it their fixtures.
PYTEST := $(VENV)/bin/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20

test: $(TESTED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/snakefmt --check Snakefile workflow
	$(VENV)/bin/snakemake --lint
	$(PYTEST) -m "not slow"

test-all: $(TESTED)
	$(PYTEST) -m slow

# What PyTorch, oneDNN and MKL compute without AVX, with AVX2, and with AVX-512 but without bf16.
test-kernels: $(TESTED)
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 $(PYTEST) -m "not slow"
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 $(PYTEST) -m "not slow"
	ATEN_CPU_CAPABILITY=avx512 ONEDNN_MAX_CPU_ISA=AVX512_CORE MKL_ENABLE_INSTRUCTIONS=AVX512 $(PYTEST) -m "not slow"

install: $(INSTALLED)
	$(if $(EXTRAS),$(PIP) -e '.[$(EXTRAS)]')

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; try: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(OUTSIDE) -m venv --clear --without-pip $(VENV)
	$(PIP) pip -e .
	touch $@

$(TESTED): $(INSTALLED)
	$(PIP) -e '.[test,ctranslate2,models,slurm,stanza]'
	touch $@
