# Two commands for a fresh clone: `make demo` and `make test`. Needs Python 3.10 or newer, a C++ compiler and make.
#
#   make PYTHON=python3.12     another Python
#   make CUDA_HOME=/opt/cuda   another CUDA toolkit; CUDA_HOME=none: that of PyPI's wheels, whatever the machine has
#   make NVCC_WHEELS=          fetch no nvcc: with CUDA_HOME=none, or without a toolkit, the core is built for the CPU alone
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export CUDA_HOME
# With nvcc on this machine nothing is fetched for the build; without it, PyPI's wheels hold a complete one.
NVCC_WHEELS = $(shell CUDA_HOME="$(CUDA_HOME)" $(PYTHON) atos_py/toolkit.py)

.PHONY: demo test lint docs gpu-test build clean

demo: build
	$(BIN)/python -m atos_py demo

test: build lint docs
	$(BIN)/python -m pytest

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/mypy

# The pages of docs/, with the API and the examples' outputs, in build/docs. A warning is an error.
docs: build
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs

# On a machine with a GPU, in an environment that has the packages: everything that needs one.
gpu-test:
	$(PYTHON) setup.py -q build_core
	$(PYTHON) -m pytest -m gpu

build: $(VENV)/installed
	$(BIN)/python setup.py -q build_core

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip "setuptools>=77" wheel
	$(if $(NVCC_WHEELS),$(BIN)/python -m pip install -q "$(NVCC_WHEELS)" || echo "nvcc cannot be had: building for the CPU alone")
	$(BIN)/python -m pip install -q --no-build-isolation -e ".[cu13,dev,docs]" || \
	{ echo "the GPU packages cannot be had"; $(BIN)/python -m pip install -q --no-build-isolation -e ".[dev,docs]"; }
	touch $@

clean:
	rm -rf $(VENV) build dist docs/gallery docs/sg_execution_times.rst *.egg-info atos_py/_lib
