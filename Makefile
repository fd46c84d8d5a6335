# nasbo: make setup | demo | test | test-all | test-system | test-package | docs | chaos | check | lock | clean
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
PURELIB := "import sysconfig; print(sysconfig.get_paths()['purelib'])"
FAST   := not slow and not gpu and not system

export OMP_NUM_THREADS ?= 1
export RAY_USAGE_STATS_ENABLED = 0

.PHONY: setup demo test test-all test-system test-package docs s3-server tracking dashboard dehb kit chaos check lock clean help

help:
	@echo "make setup     environment in $(VENV), pinned"
	@echo "make demo      set-up, CIFAR-10, a small real sweep into runs/demo, its result"
	@echo "make test      the tests, real Ray on this machine"
	@echo "make test-all  also the slow ones"
	@echo "make test-system  with Chromium and other programs of the system"
	@echo "make docs      the documentation site, into build/docs"
	@echo "make test-package  the wheel in an empty environment: downloads PyTorch"
	@echo "make kit       Lightning and timm, for the system tests"
	@echo "make s3-server a server that speaks S3, for the system tests"
	@echo "make dehb      a peer of the benchmark, for the system tests"
	@echo "make tracking  MLflow and Weights & Biases, for the system tests"
	@echo "make dashboard optuna-dashboard, for the system tests"
	@echo "make chaos     kill drivers and nodes of running sweeps, count what was lost"
	@echo "make check     lint and types"
	@echo "make lock      renew requirements.lock from pyproject.toml"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed: make setup PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check -q -r requirements.lock
	$(BIN)/pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: setup
	$(BIN)/nasbo data cifar10
	$(BIN)/nasbo run search_spaces/nas_cifar10.yaml -o recipe=proxy --trials 16 --slots 2 --dir runs/demo --or-resume
	$(BIN)/nasbo report runs/demo

test: setup
	$(BIN)/python -m pytest -m "not ray and $(FAST)" -n 2 --dist loadfile --cov --cov-report=
	$(BIN)/python -m pytest -m "ray and $(FAST)" -n 2 --dist loadfile --cov --cov-append --cov-report=term:skip-covered --cov-fail-under=90

test-all: setup
	$(BIN)/python -m pytest -m "not gpu and not system"

# These fail, and say what to install, where a program is missing.
test-system: setup s3-server tracking dashboard dehb kit
	$(BIN)/python -m pytest -m system

test-package: setup
	$(BIN)/python -m pytest -m system tests/system/test_package.py

# Every warning is an error; pages and their order are read anew each time.
docs: $(VENV)/.docs-ready
	$(BIN)/python -m sphinx -E -W --keep-going -q -c docs . build/docs
	@echo "build/docs/index.html"

$(VENV)/.docs-ready: $(STAMP)
	$(BIN)/pip install --disable-pip-version-check -q -c requirements.lock --no-build-isolation -e '.[docs]'
	@touch $@

# Its packages contradict ours: an environment of its own.
s3-server: .venv-s3/.ready

.venv-s3/.ready:
	test -x .venv-s3/bin/python || $(PYTHON) -m venv .venv-s3
	.venv-s3/bin/pip install --disable-pip-version-check -q 'moto[s3]==5.2.5' flask flask-cors
	@touch $@

# Their pins contradict ours: an environment on top of ours.
tracking: .venv-tracking/.ready

.venv-tracking/.ready: $(STAMP)
	test -x .venv-tracking/bin/python || $(PYTHON) -m venv .venv-tracking
	$(BIN)/python -c $(PURELIB) > "$$(.venv-tracking/bin/python -c $(PURELIB))/base.pth"
	.venv-tracking/bin/pip install --disable-pip-version-check -q 'mlflow==3.17.2' 'wandb==0.31.0'
	@touch $@

# It brings packages that nasbo does not need.
dashboard: .venv-dashboard/.ready

.venv-dashboard/.ready:
	test -x .venv-dashboard/bin/python || $(PYTHON) -m venv .venv-dashboard
	.venv-dashboard/bin/pip install --disable-pip-version-check -q 'optuna-dashboard==0.21.0'
	@touch $@

# It asks for a NumPy before 2, which it does not need: beside ours, without its dependencies.
dehb: .venv-dehb/.ready

.venv-dehb/.ready: | setup
	$(BIN)/pip install --disable-pip-version-check -q --no-deps --upgrade --target .venv-dehb 'DEHB==0.1.2' 'loguru>=0.7'
	@touch $@

# Optional packages that the shared environment does not need; it sees all of that one's.
kit: .venv-kit/.ready

.venv-kit/.ready: $(STAMP)
	test -x .venv-kit/bin/python || $(PYTHON) -m venv .venv-kit
	$(BIN)/python -c $(PURELIB) > "$$(.venv-kit/bin/python -c $(PURELIB))/base.pth"
	.venv-kit/bin/pip install --disable-pip-version-check -q 'lightning>=2.4,<3' 'timm>=1.0.15'
	@touch $@

chaos: setup
	$(BIN)/python -m tests.chaos

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Registry options of this machine stay out of the file.
lock: setup
	$(BIN)/pip-compile -q --extra bench --extra export --extra docs --extra dev --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --allow-unsafe -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .venv-* build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
