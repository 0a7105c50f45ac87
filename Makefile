# Two commands do everything on a fresh machine with Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 4  # twice the cores of a small machine: many tests wait for real programs
RIG_PACKAGES := slurmctld slurmd slurm-client munge openssh-server openssh-client iproute2 gcc libc6-dev tmux
CODE   := cockpit screens actions themes tests setup.py

.PHONY: demo test check format bench reliability lock audit rig rig-down packages goldens keys docs screenshots dist pyz \
	clean help

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: $(VENV)/.demo   ## the cockpit on an embedded demo cluster
	$(BIN)/cockpit demo

test: $(VENV)/.dev packages   ## every test that can run on this machine
	$(BIN)/python -m pytest -n $(JOBS)

check: $(VENV)/.dev   ## lint, format, types, import rules
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev   ## put the code into the project's format
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/.dev packages   ## speed against raw commands; writes bench.json and docs/BENCH.md
	$(BIN)/python -m tests.bench

reliability: $(VENV)/.dev packages   ## break everything on purpose; writes docs/RELIABILITY.md
	$(BIN)/python -m tests.faults

rig: $(VENV)/.dev packages   ## a real Slurm cluster on this machine (root, Debian or Ubuntu)
	$(BIN)/python -m tests.rig up

rig-down: $(VENV)/.dev   ## end it
	$(BIN)/python -m tests.rig down

goldens: $(VENV)/.dev   ## write the plain-text screens anew; look at the diff before you commit it
	COCKPIT_WRITE_GOLDENS=1 $(BIN)/python -m pytest tests/screens -n $(JOBS)

keys: $(VENV)/.dev   ## write docs/KEYS.md anew from the key table
	XDG_CONFIG_HOME=/nonexistent $(BIN)/cockpit keys --markdown > docs/KEYS.md

screenshots: $(VENV)/.dev   ## make the pictures in docs/screenshots anew, from the demo
	$(BIN)/python -m tests.screenshots docs/screenshots

docs: $(VENV)/.dev   ## write everything in docs/ anew that is made from the code
	$(BIN)/python -m tests.docs

dist: $(VENV)/.dev   ## wheel and source distribution in dist/
	rm -rf dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --outdir dist .

pyz: dist   ## dist/cockpit.pyz: one file for heads without pip, for this machine's kind and Python
	$(BIN)/python -m tests.pyz dist/*.whl dist/cockpit.pyz

lock: $(VENV)/.dev   ## write requirements.lock anew: every package with the hashes of its files
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python -m uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate --no-config -o requirements.lock pyproject.toml

audit: $(VENV)/.dev   ## known vulnerabilities of what is locked; needs the internet (PyPI's advisories)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --strict --require-hashes --disable-pip -r requirements.lock

packages:        # what the rig needs, where we may install it
	@PACKAGES="$(RIG_PACKAGES)" sh tests/rig/packages.sh

$(VENV)/.demo: pyproject.toml
	@sh tests/venv.sh $(PYTHON) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml
	@sh tests/venv.sh $(PYTHON) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

clean:           ## remove what the build made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
