# nasbo: make setup | demo | test | test-all | test-system | test-package | chaos | check | lock | clean
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
FAST   := not slow and not gpu and not system

export OMP_NUM_THREADS ?= 1
export RAY_USAGE_STATS_ENABLED = 0

.PHONY: setup demo test test-all test-system test-package s3-server kit chaos check lock clean help

help:
	@echo "make setup     environment in $(VENV), pinned"
	@echo "make demo      set-up, CIFAR-10, a small real sweep into runs/demo, its result"
	@echo "make test      the tests, real Ray on this machine"
	@echo "make test-all  also the slow ones"
	@echo "make test-system  with Chromium and other programs of the system"
	@echo "make test-package  the wheel in an empty environment: downloads PyTorch"
	@echo "make kit       Lightning and timm, for the system tests"
	@echo "make s3-server a server that speaks S3, for the system tests"
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
test-system: setup s3-server kit
	$(BIN)/python -m pytest -m system

test-package: setup
	$(BIN)/python -m pytest -m system tests/system/test_package.py

# Its packages contradict ours: an environment of its own.
s3-server: .venv-s3/.ready

.venv-s3/.ready:
	test -x .venv-s3/bin/python || $(PYTHON) -m venv .venv-s3
	.venv-s3/bin/pip install --disable-pip-version-check -q 'moto[s3]==5.2.5' flask flask-cors
	@touch $@

# Optional packages that the shared environment does not need; it sees all of that one's.
kit: .venv-kit/.ready

.venv-kit/.ready: $(STAMP)
	test -x .venv-kit/bin/python || $(PYTHON) -m venv .venv-kit
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$$(.venv-kit/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nasbo-base.pth"
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
	$(BIN)/pip-compile -q --extra bench --extra export --extra dev --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --allow-unsafe -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .venv-s3 .venv-kit .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
