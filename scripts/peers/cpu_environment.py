# SPDX-License-Identifier: Apache-2.0
"""What the process of a CPU peer is started with, so that it is measured at its best."""
import getpass
import os
import sys
import tempfile

# Read when a process starts. The allocator keeps what was freed: a result of a hundred megabytes would otherwise be
# given back to the system after each call and its pages cleared for the next, which no model that runs for longer would
# suffer. Threads without work spin for half a millisecond, longer than between two calls of a burst: by themselves those
# of OpenBLAS do so for 30 to 100 ms and those of OpenMP for 15, and take the processors from our next burst.
ENVIRONMENT = {
    "OPENBLAS_THREAD_TIMEOUT": "20",  # 2^20 cycles
    "GOMP_SPINCOUNT": "10000",
    "KMP_BLOCKTIME": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of compilers that stays
    "TORCHINDUCTOR_VEC_ISA_OK": "1",  # what the processor has works: trying it takes half a minute, one process at a time
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",  # one process would do that, and all others wait for it
}
# Made by `make peers`; it says of itself what it is for.
AMX_PALETTE = os.path.join(sys.prefix, "lib", "amx_palette.so")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def inductor_cache(threads):
    """One for each number of threads: code for one number is not always told from code for another."""
    base = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    base = base or os.path.join(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")
    own = f"threads-{threads}"
    return base if os.path.basename(base) == own else os.path.join(base, own)


def of_threads(threads):
    """The variables of a process that uses so many."""
    return {**ENVIRONMENT, "TORCHINDUCTOR_CACHE_DIR": inductor_cache(threads),
            **{name: str(threads) for name in THREADS}}


def start_with(wanted):
    """Starts over unless the process was started with these variables."""
    if os.path.exists(AMX_PALETTE):
        wanted = {**wanted, "LD_PRELOAD": AMX_PALETTE}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})
    os.environ.pop("LD_PRELOAD", None)  # not for compilers, which catch the signals that it needs
