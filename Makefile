# Everything a developer runs. Each target does its own set-up; nothing but make is needed to begin with.
#
#   make demo        train a model on real flights, calibrate it, write curve, table and picture to demo/
#   make test        C++ and Python tests; EXTRAS=all adds the long suites
#   make sanitize    the C++ tests under AddressSanitizer + UBSan (g++) and ThreadSanitizer (clang++)
#   make cuda        compile the CUDA executor, its tester and benchmark (CUDA_ARCHITECTURES, one by default)
#   make lint        clang-format, clang-tidy, include layers, ruff, mypy
#   make format      rewrite sources with clang-format and ruff
#   make bench       benchmarks
#   make sdist-test  build a wheel from a source distribution in a clean environment
#   make clean       remove what the above made

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test test-cpp test-python test-torch test-jax test-lightgbm test-gpu test-extras cuda sanitize sanitize-address sanitize-thread lint lint-cpp lint-python \
        format bench sdist-test clean bootstrap bootstrap-test bootstrap-lint

BUILD ?= build
VENV ?= .venv
JOBS ?= $(shell nproc)
EXTRAS ?=
CTEST_FLAGS ?= --no-tests=error --output-on-failure -j $(JOBS)
PYTEST_FLAGS ?=

CMAKE_CONFIGURE = cmake -S . -G Ninja -DISOFOLD_CUDA=OFF
CMAKE_BUILD = cmake --build
BIN := $(VENV)/bin

# Suites too long for every run, as targets; `make test EXTRAS=all` runs them.
EXTRA_SUITES := test-torch test-jax test-lightgbm

bootstrap:
	@scripts/bootstrap

bootstrap-test:
	@scripts/bootstrap --test

bootstrap-lint:
	@scripts/bootstrap --lint

# ---- Python environment -------------------------------------------------------------------------------------------

$(VENV)/.created: | bootstrap
	"$$(scripts/bootstrap --python)" -m venv "$(VENV)"
	$(BIN)/python -m pip install -q --upgrade pip
	touch $@

# What pyproject.toml's build-system asks for, so that rebuilding is incremental (no isolated environment each time).
$(VENV)/.build-requirements: pyproject.toml $(VENV)/.created
	$(BIN)/python scripts/build_requirements.py pyproject.toml > $@.txt
	$(BIN)/python -m pip install -q -r $@.txt
	mv $@.txt $@

# $(call install_package,extra): builds and installs isofold, as a user's pip would, with an extra's dependencies.
COMMA := ,
define install_package
	$(BIN)/python -m pip install -q --no-build-isolation --config-settings=build-dir="$(BUILD)/python" ".[$(1)]"
endef

# ---- Demo ---------------------------------------------------------------------------------------------------------

demo: $(VENV)/.build-requirements
	$(call install_package,demo)
	$(BIN)/python examples/flights/calibrate_flights.py

# ---- Tests --------------------------------------------------------------------------------------------------------

ifeq ($(EXTRAS),all)
test: test-cpp test-python test-gpu test-extras
else ifeq ($(EXTRAS),)
test: test-cpp test-python test-gpu
	@echo "left out: $(if $(EXTRA_SUITES),$(EXTRA_SUITES) (make test EXTRAS=all runs them),none)"
else
$(error EXTRAS is '$(EXTRAS)'; it may be empty or all)
endif

test-cpp: | bootstrap
	$(CMAKE_CONFIGURE) -B "$(BUILD)" -DISOFOLD_BUILD_TESTS=ON
	$(CMAKE_BUILD) "$(BUILD)" -j $(JOBS)
	ctest --test-dir "$(BUILD)" $(CTEST_FLAGS)

test-python: $(VENV)/.build-requirements | bootstrap-test
	$(call install_package,test)
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

# Some 6 GB with torch's own libraries. Fetches the sources of torchsort and torchisotonic into .cache, for their tests.
test-torch: $(VENV)/.build-requirements | bootstrap-test
	$(call install_package,torch-test)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/torch

test-jax: $(VENV)/.build-requirements | bootstrap-test
	$(call install_package,test$(COMMA)jax)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/jax

# Best splits and trees beside LightGBM's.
test-lightgbm: $(VENV)/.build-requirements | bootstrap-test
	$(call install_package,lightgbm-test)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/lightgbm

# Where there is a GPU and a CUDA compiler.
test-gpu:
	@if ! command -v nvcc >/dev/null; then echo "left out: GPU tests (no CUDA compiler)"; \
	elif ! nvidia-smi -L >/dev/null 2>&1; then echo "left out: GPU tests (no GPU)"; \
	else scripts/gpu_check.sh --tests-only; fi

CUDA_ARCHITECTURES ?= 90-real
cuda:
	$(CMAKE_CONFIGURE) -B "$(BUILD)/cuda" -DISOFOLD_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$(CUDA_ARCHITECTURES)" \
	  -DISOFOLD_BUILD_TESTS=OFF -DISOFOLD_BUILD_GPU_TESTS=ON -DISOFOLD_CURVES=OFF
	$(CMAKE_BUILD) "$(BUILD)/cuda" -j $(JOBS)

test-extras: test-cpp test-python $(EXTRA_SUITES)
	@echo "extra suites: $(if $(EXTRA_SUITES),$(EXTRA_SUITES),there are none yet)"

# The two compilers share the work: whatever one of them does to the arithmetic, the same exact answers are asked for.
sanitize: sanitize-address sanitize-thread

sanitize-address: | bootstrap-lint
	$(CMAKE_CONFIGURE) -B "$(BUILD)/asan" -DCMAKE_CXX_COMPILER=g++ -DISOFOLD_BUILD_TESTS=ON \
	  -DISOFOLD_SANITIZE=address,undefined
	$(CMAKE_BUILD) "$(BUILD)/asan" -j $(JOBS)
	UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1 \
	  ctest --test-dir "$(BUILD)/asan" $(CTEST_FLAGS)

sanitize-thread: | bootstrap-lint
	$(CMAKE_CONFIGURE) -B "$(BUILD)/tsan" -DCMAKE_CXX_COMPILER=clang++-19 -DISOFOLD_BUILD_TESTS=ON \
	  -DISOFOLD_SANITIZE=thread
	$(CMAKE_BUILD) "$(BUILD)/tsan" -j $(JOBS)
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 ctest --test-dir "$(BUILD)/tsan" $(CTEST_FLAGS)

sdist-test: $(VENV)/.created
	scripts/test_sdist "$(BIN)/python"

# ---- Lint ---------------------------------------------------------------------------------------------------------

CPP_FILES = $(shell git ls-files --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh')
PYTHON_FILES = $(wildcard python scripts tests examples bench)

$(VENV)/.dev: pyproject.toml $(VENV)/.build-requirements
	$(BIN)/python scripts/build_requirements.py pyproject.toml dev > $@.txt
	$(BIN)/python -m pip install -q -r $@.txt
	mv $@.txt $@

lint: lint-cpp lint-python

lint-cpp: $(VENV)/.build-requirements | bootstrap-lint
	clang-format-19 --dry-run -Werror $(CPP_FILES)
	$(BIN)/python scripts/check_layers.py
	$(CMAKE_CONFIGURE) -B "$(BUILD)/lint" -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
	  -DISOFOLD_BUILD_TESTS=OFF -DISOFOLD_BUILD_PYTHON=ON -DPython_EXECUTABLE="$(abspath $(BIN))/python"
	run-clang-tidy-19 -quiet -p "$(BUILD)/lint" -j $(JOBS) "^$(CURDIR)/(src|bindings)/"

lint-python: $(VENV)/.dev
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy

format: $(VENV)/.dev | bootstrap-lint
	clang-format-19 -i $(CPP_FILES)
	$(BIN)/ruff check --fix-only $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)

# ---- Benchmarks ---------------------------------------------------------------------------------------------------

bench: $(VENV)/.build-requirements
	$(CMAKE_CONFIGURE) -B "$(BUILD)/bench" -DISOFOLD_BUILD_TESTS=OFF -DISOFOLD_BUILD_BENCHMARKS=ON
	$(CMAKE_BUILD) "$(BUILD)/bench" -j $(JOBS)
	"$(BUILD)/bench/bench/cpu_benchmarks"
	$(call install_package,test)
	$(BIN)/python bench/cpu/compare.py

clean:
	rm -rf "$(BUILD)" "$(VENV)" dist wheels demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find python tests scripts examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
