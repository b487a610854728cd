# SPDX-License-Identifier: Apache-2.0
# Tests of IR (.mlir, through tenon-opt and FileCheck) and of the command line (.test, shell). Run by ctest as "lit", or
#     build/venv/bin/lit -sv build/test/lit [--filter <regex>]
import os
import subprocess

import lit.formats

config.name = "tenon"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.tenon_exec_root
config.excludes = ["unit", "e2e", "fuzz", "lit.cfg.py", "lit.site.cfg.py.in", "Inputs"]

# tenon and tenon-opt, then LLVM's FileCheck and not; nothing else of the caller's environment reaches a test.
config.environment["PATH"] = os.pathsep.join([config.tenon_bin, config.llvm_bin, "/usr/bin", "/bin"])
config.environment["TENON_CACHE_DIR"] = config.tenon_cache
config.available_features.update(name for name in ("tenon", "tenon-opt")
                                 if os.access(os.path.join(config.tenon_bin, name), os.X_OK))

# The same ceilings every time, however busy the machine is.
write_ceilings = os.path.join(config.tenon_bin, "write-ceilings")
if os.access(write_ceilings, os.X_OK):
    subprocess.run([write_ceilings], env={"TENON_CACHE_DIR": config.tenon_cache}, check=True)

# A CUDA driver of the tests' own, which runs nothing, and the libraries that come with one.
config.substitutions.append(("%fakecuda", os.path.join(config.tenon_bin, "..", "lib", "libfakecuda.so")))
config.substitutions.append(("%fakenvrtc", os.path.join(config.tenon_bin, "..", "lib", "libfakenvrtc.so")))
config.substitutions.append(("%fakenvml", os.path.join(config.tenon_bin, "..", "lib", "libfakenvml.so")))

# The first CPU phase, tidied for reading: constants at the top, each address computed once. The phase is not verified
# on its own here, as in the jit; cpu/valid.mlir does that.
config.substitutions.append(("%lower", "tenon-opt -split-input-file"
                             " --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512},canonicalize,cse)'"))
