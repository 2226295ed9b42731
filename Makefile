# Two commands for a fresh clone: `make demo` and `make test`. Needs Python 3.10 or newer, a C++ compiler and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# With nvcc on this machine nothing is fetched for the build; without it, PyPI's wheels hold a complete one.
NVCC_WHEELS := $(shell command -v nvcc >/dev/null 2>&1 || test -x /usr/local/cuda/bin/nvcc || echo nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-cccl nvidia-cuda-runtime)

.PHONY: demo test lint gpu-test build clean

demo: build
	$(BIN)/python -m atos_py demo

test: build lint
	$(BIN)/python -m pytest

lint: build
	$(BIN)/ruff check .
	$(BIN)/mypy

# On a machine with a GPU, in an environment that has the packages: everything that needs one.
gpu-test:
	$(PYTHON) setup.py build_core
	$(PYTHON) -m pytest -m gpu

build: $(VENV)/installed
	$(BIN)/python setup.py -q build_core

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip "setuptools>=77" wheel
	$(BIN)/python -m pip install -q $(NVCC_WHEELS) "numba-cuda[cu13]>=0.30,<0.31" || echo "no GPU packages to be had: CPU only"
	$(BIN)/python -m pip install -q --no-build-isolation -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info atos_py/_lib
