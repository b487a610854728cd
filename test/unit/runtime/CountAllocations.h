// SPDX-License-Identifier: Apache-2.0
//
// Counts what a thread allocates by `new` while it says so. In place of the program's own: for one file of a test.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
thread_local bool counting = false;
std::atomic<int> allocations{0};
} // namespace

void *operator new(size_t bytes) {
  if (counting)
    ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
