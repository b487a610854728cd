# SPDX-License-Identifier: Apache-2.0
# The two commands: `make demo` and `make test`. Both set the machine up first (packages only if missing).
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all setup demo test test-sanitize soak install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

setup:
	@scripts/install-dependencies $(BUILD)

$(BUILD)/build.ninja: | setup
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
	  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache $(CMAKE_ARGS) > $(BUILD)/configure.log \
	  || { cat $(BUILD)/configure.log; exit 1; }
