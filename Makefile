# Two commands for a fresh clone: `make demo` and `make test`. Needs Python 3.10 or newer, a C++ compiler and make.
#
#   make PYTHON=python3.12     another Python
#   make CUDA_HOME=/opt/cuda   another CUDA toolkit; CUDA_HOME=none: that of PyPI's wheels, whatever the machine has
#   make ATOS_CPU_ONLY=1       for the CPU alone: neither nvcc nor the packages for GPUs are fetched
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export CUDA_HOME ATOS_CPU_ONLY
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_ROOT_USER_ACTION = ignore
# With nvcc on this machine nothing is fetched for the build; without it, PyPI's wheels hold a complete one.
NVCC_WHEELS = $(shell CUDA_HOME="$(CUDA_HOME)" ATOS_CPU_ONLY="$(ATOS_CPU_ONLY)" $(PYTHON) atos_py/tools/cuda_toolkit.py)

.PHONY: demo test tests test-all lint docs soak gpu-test gpu-test-all build dist wheel-test try-wheel clean

# What a command does, and how long on two cores, in a line before anything else. The first command in a clone sets up $(VENV) too.
SAYS_demo := BFS on each device, with each worker, in each schedule, each result proved right: about a minute
SAYS_test := build, ruff, mypy, clang-format, the documents and the tests: about a quarter of an hour
ifeq ($(MAKELEVEL),0)
$(foreach goal,$(or $(MAKECMDGOALS),demo),$(if $(SAYS_$(goal)),$(info make $(goal): $(SAYS_$(goal)))))
endif

# A command whose output is shown only if it fails: $(call quietly,NAME OF THE LOG,COMMAND)
quietly = mkdir -p build/logs && { ( $(2) ) > build/logs/$(1) 2>&1 || { cat build/logs/$(1); exit 1; }; }

demo: build
	@$(BIN)/python -m atos_py demo

# Tests run side by side, so that NumPy's products should not take all cores each.
tests test-all gpu-test: export OPENBLAS_NUM_THREADS = 1

# With -j these three run side by side.
test: lint docs tests
	@echo "make test: the checks, the documents and the tests that ran have passed."

# As many tests at a time as there are cores: most of them wait for a compiler of one thread.
tests: build
	@$(BIN)/python -m pytest --numprocesses auto --dist loadgroup

lint: $(VENV)/installed
	@$(call quietly,ruff,$(BIN)/ruff check .)
	@$(call quietly,mypy,$(BIN)/mypy)
	@$(call quietly,clang-format,\
	$(BIN)/clang-format --dry-run -Werror $$(find csrc -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh'))

# The pages of docs/, with the API and the examples' outputs, in build/docs. A warning is an error.
docs: build
	@$(call quietly,sphinx,$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs)

# All parts of the tests, or those that PARTS names, and their stamps, by which `make test` leaves them out (tests/stamps.py);
# PARTS=outdated: those whose stamps do not hold.
# Without PARTS also more cases of the tests that try a few by default: schedules of programs, and every algorithm on large graphs.
PARTS ?= all
ATOS_TEST_CASES ?= 1200
test-all: export ATOS_STAMP = $(filter-out wheel,$(PARTS))
test-all: build
	$(if $(ATOS_STAMP),$(if $(filter all,$(PARTS)),ATOS_TEST_CASES=$(ATOS_TEST_CASES)) $(BIN)/python -m pytest --numprocesses auto --dist loadgroup)
	$(if $(filter outdated,$(PARTS)),$(BIN)/python tests/stamps.py wheel || )$(if $(filter all wheel outdated,$(PARTS)),\
	{ $(MAKE) try-wheel && $(BIN)/python tests/stamps.py wheel 2; }) # trials: installed.py and the demo

# Launches, inputs and API calls drawn at random; a run in which nothing fails adds a line to tests/soak.csv.
MINUTES ?= 10
soak: build
	@$(BIN)/python -c "import atheris" 2> /dev/null || $(BIN)/python -m pip install -q atheris || \
	echo "going on without atheris: inputs are changed at random, and not guided by coverage"
	@$(BIN)/python tests/soak/run.py --minutes $(MINUTES)

# On a machine with a GPU, in an environment that has the packages: everything that needs one, JOBS tests at a time. Of a test with
# several parameters, cases in which every two of their values come together; gpu-test-all has all. It goes on where it was stopped
# if the sources are still the same; ATOS_TEST_SECONDS=540 has it begin no test after that time, on a machine lent for minutes.
# Most launches there run the first kernel of a task; with ATOS_TIER=best all run the best one.
JOBS ?= auto
gpu-test: export ATOS_TEST_PASSED ?= build/passed-on-gpu.txt
gpu-test:
	$(PYTHON) setup.py -q build_core
	$(PYTHON) -m pytest -m gpu --numprocesses $(JOBS) --dist load --maxschedchunk 12 --timeout 240

gpu-test-all:
	ATOS_TEST_COMBINATIONS=all $(MAKE) gpu-test

build: $(VENV)/installed
	@$(BIN)/python setup.py -q build_core

# What is published: the sdist, and from it a wheel for each of MACHINES, which runs with the C library GLIBC and with later ones:
# ziglang's clang++ compiles for that, on any machine, and auditwheel proves it. With the package's own tasks compiled in them: by
# NVVM and nvJitLink of the same CUDA as the core, since those of 13.5 made kernels of PageRank 10 % slower than those of 13.0. With
# KERNELS=0 without these tasks, for a trial.
KERNELS ?= 1
MACHINES ?= x86_64 aarch64
GLIBC ?= 2.28
NVCC_VERSION = import json; print(json.load(open("atos_py/_lib/built.json")).get("nvcc", "").rpartition(".")[0])
dist: build
	@rm -rf build/lib build/bdist.* build/dist build/bare dist
	@test $(KERNELS) = 0 || { cuda=$$($(BIN)/python -c '$(NVCC_VERSION)') && \
	if test -n "$$cuda" && $(BIN)/python -c "import cuda.core" 2> /dev/null; then \
	$(BIN)/python -m pip install -q "nvidia-nvvm==$$cuda.*" "nvidia-nvjitlink==$$cuda.*"; fi && \
	$(BIN)/python setup.py -q build_kernels; }
	@$(call quietly,sdist,$(BIN)/python -m build --no-isolation --sdist --outdir build/dist .)
	@mkdir -p dist && cp build/dist/*.tar.gz dist
	@set -e; for machine in $(MACHINES); do $(MAKE) --no-print-directory dist/$$machine; done
	@$(call quietly,twine,$(BIN)/python -m twine check --strict dist/*)
	@echo "dist has the sdist and the wheels for glibc $(GLIBC): $(MACHINES)"

# What nvcc made and the package's tasks serve any machine, but for the tasks for CPUs, which are for this one.
dist/%:
	@rm -rf build/$* && mkdir -p build/$*/atos_py/_lib && tar -xzf build/dist/*.tar.gz -C build/$* --strip-components 1
	@cp atos_py/_lib/built.json $(wildcard atos_py/_lib/*.fatbin atos_py/_lib/kernels_*.xz) \
	$(if $(filter $(shell uname -m),$*),$(wildcard atos_py/_lib/tasks_cpu.xz)) build/$*/atos_py/_lib
	@$(call quietly,wheel-$*,cd build/$* && CXX="$(abspath $(BIN))/python -m ziglang c++ -s -target $*-linux-gnu.$(GLIBC)" \
	_PYTHON_HOST_PLATFORM=linux-$* $(abspath $(BIN))/python -m build --no-isolation --wheel --outdir ../dist .)
	@$(call quietly,auditwheel-$*,PATH="$(abspath $(BIN)):$$PATH" auditwheel repair \
	--plat auto --wheel-dir dist build/dist/*$*.whl)

# The wheel in an environment of its own, with no compiler in sight; linked for a GPU too, where the core was built for one.
# With the versions it was built with, for which alone its tasks for CPUs count. The tasks stay out of the wheel if their part is
# stamped (tests/stamps.py); otherwise its kernels are compared with tests/compile/shipped_kernels.txt.
wheel-test: build
	@$(MAKE) --no-print-directory try-wheel KERNELS=$$($(BIN)/python tests/stamps.py wheel >&2 && echo 0 || echo 1)

try-wheel: MACHINES = $(shell uname -m)
try-wheel: dist
	@test $(KERNELS) = 0 -o ! -f atos_py/_lib/kernels_sm_90.xz || $(BIN)/python tests/compile/shipped_kernels.py --diff
	@$(PYTHON) -m venv build/bare
	@cd build; wheel=$$(ls ../dist/*.whl); gpu=; \
	if ls ../atos_py/_lib/*.fatbin > /dev/null && ../$(BIN)/python -c "import cuda.core"; then wheel="$$wheel[cu13]" gpu=--gpu; fi; \
	../$(BIN)/python -m pip freeze | grep -iE '^(numba|llvmlite|numpy)==' > versions.txt; \
	bare/bin/python -m pip install -q --no-compile -c versions.txt "$$wheel" && export ATOS_CACHE_DIR=bare/cache PATH= && \
	bare/bin/python ../tests/installed.py $(if $(filter 1,$(KERNELS)),--published) $$gpu && bare/bin/atos demo --device cpu --graph road:60 rmat:8

# The tests of tasks and launches with the newest Numba, if that is another one than the environment's.
newest-numba: $(VENV)/installed
	@$(BIN)/python tests/other_numba.py

# Of what pip fetches nothing is compiled to bytecode before it is imported, which takes half a minute less. numba-cuda is there for
# the tests of helpers that need it.
$(VENV)/installed: pyproject.toml
	@echo "setting up $(VENV): minutes, for what pip fetches and the compilers make"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --upgrade pip "setuptools>=77" wheel
	@$(if $(NVCC_WHEELS),echo "fetching nvcc"; \
	$(BIN)/python -m pip install -q "$(NVCC_WHEELS)" || echo "nvcc cannot be had: building for the CPU alone")
	@echo "compiling the core"
	@$(call quietly,core,$(BIN)/python setup.py -q build_core) # which pip would do, but without a word
	@echo "fetching the packages"
	@{ test "$(ATOS_CPU_ONLY)" != 1 && $(BIN)/python -m pip install -q --no-compile --no-build-isolation -e ".[cu13,dev,docs]" "numba-cuda>=0.30"; } || \
	{ echo "going on without the packages for GPUs"; $(BIN)/python -m pip install -q --no-compile --no-build-isolation -e ".[dev,docs]"; }
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/gallery docs/sg_execution_times.rst *.egg-info atos_py/_lib
