# SPDX-License-Identifier: Apache-2.0
# The two commands: `make demo` and `make test`. Both set the machine up first (packages only if missing) and build.
BUILD ?= build
JOBS ?= $(shell nproc)
CONFIGURE = cmake -S . -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache

.PHONY: all setup demo test test-sanitize sanitize-gpu soak peers install dist clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

setup:
	@scripts/install-dependencies $(BUILD)

$(BUILD)/build.ninja: | setup
	@$(CONFIGURE) -B $(BUILD) > $(BUILD)/configure.log || { cat $(BUILD)/configure.log; exit 1; }

demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) tenon-tool
	@$(BUILD)/bin/tenon demo

test: all
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure

# The suite under the address and undefined-behaviour sanitizers, in a build of its own. LLVM's libraries are not
# instrumented, so what its headers tell the sanitizer about their memory is only half the story: switched off. Memory
# that cannot be had is an error of the program's own, which tests ask for.
SANITIZER_OPTIONS = allow_user_poisoning=0:detect_container_overflow=0:allocator_may_return_null=1
test-sanitize: setup
	@scripts/install-dependencies $(BUILD)-sanitize
	@$(CONFIGURE) -B $(BUILD)-sanitize -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTENON_SANITIZE=address,undefined \
	  > $(BUILD)-sanitize/configure.log || { cat $(BUILD)-sanitize/configure.log; exit 1; }
	@ninja -C $(BUILD)-sanitize -j $(JOBS)
	@ASAN_OPTIONS=$(SANITIZER_OPTIONS) ctest --test-dir $(BUILD)-sanitize --output-on-failure

# The zoo on a CUDA device under NVIDIA's compute-sanitizer, which comes with the CUDA toolkit: a minute.
sanitize-gpu: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) tenon-tool
	@scripts/sanitize-gpu --tenon $(BUILD)/bin/tenon --out $(BUILD)/sanitizer

# Random programs with fresh seeds for MINUTES.
MINUTES ?= 30
soak: all
	@$(BUILD)/test/fuzz-programs --seed $$(date +%s) --seconds $$(( $(MINUTES) * 60 ))

# What `tenon bench cpu --peers` measures beside us, in a virtual environment that nothing else uses. Which PyTorch that
# is, for the processor alone or for a GPU too, is a matter of how pip is configured.
peers:
	@test -x $(BUILD)/peers-venv/bin/python3 || python3 -m venv $(BUILD)/peers-venv
	@$(BUILD)/peers-venv/bin/pip install --quiet 'torch==2.13.0' 'numpy>=2,<3' setuptools
	@cc -O2 -shared -fPIC -o $(BUILD)/peers-venv/lib/amx_palette.so scripts/peers/amx_palette.c
	@$(BUILD)/peers-venv/bin/python3 scripts/peers/cpu_peers.py --self-test

install: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) tenon tenon-tool
	@cmake --install $(BUILD) --strip --prefix $(or $(PREFIX),/usr/local)

# The command and its libraries as an archive for other machines.
dist: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) tenon-tool
	@scripts/make-dist $(BUILD)

clean:
	@rm -rf $(BUILD) $(BUILD)-sanitize
