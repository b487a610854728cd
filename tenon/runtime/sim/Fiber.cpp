// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/sim/Fiber.h"

#include "tenon/base/Error.h"

#include <boost/context/detail/fcontext.hpp>

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define TENON_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_FIBER_ASAN 1
#endif
#endif
#ifdef TENON_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

using namespace boost::context::detail;

namespace tenon::sim {
namespace {

void beforeSwitch([[maybe_unused]] void **fakeStack, [[maybe_unused]] const void *bottom,
                  [[maybe_unused]] size_t bytes) {
#ifdef TENON_FIBER_ASAN
  __sanitizer_start_switch_fiber(fakeStack, bottom, bytes);
#endif
}
void afterSwitch([[maybe_unused]] void *fakeStack, [[maybe_unused]] const void **bottom,
                 [[maybe_unused]] size_t *bytes) {
#ifdef TENON_FIBER_ASAN
  __sanitizer_finish_switch_fiber(fakeStack, bottom, bytes);
#endif
}

constexpr size_t guardBytes = 4096;

} // namespace

struct FiberEntry {
  static void run(transfer_t transfer) {
    auto *fiber = static_cast<Fiber *>(transfer.data);
    fiber->caller_ = transfer.fctx;
    Fiber::enter(fiber);
  }
};

void Fiber::start(void *top, void (*body)(void *), void *argument) {
  top_ = top;
  body_ = body;
  argument_ = argument;
  done_ = false;
  context_ = make_fcontext(top, stackBytes, &FiberEntry::run);
}

void Fiber::enter(Fiber *fiber) {
  afterSwitch(nullptr, &fiber->callerStack_, &fiber->callerBytes_);
  fiber->body_(fiber->argument_);
  fiber->done_ = true;
  beforeSwitch(nullptr, fiber->callerStack_, fiber->callerBytes_);
  jump_fcontext(fiber->caller_, nullptr);
}

void Fiber::resume() {
  void *fakeStack = nullptr;
  beforeSwitch(&fakeStack, static_cast<char *>(top_) - stackBytes, stackBytes);
  context_ = jump_fcontext(context_, this).fctx;
  afterSwitch(fakeStack, nullptr, nullptr);
}

void Fiber::suspend() {
  beforeSwitch(&fakeStack_, callerStack_, callerBytes_);
  caller_ = jump_fcontext(caller_, nullptr).fctx;
  afterSwitch(fakeStack_, &callerStack_, &callerBytes_);
}

void *StackPool::take() {
  if (free_.empty()) {
    void *memory = mmap(nullptr, guardBytes + Fiber::stackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(std::string("no memory for the stack of a simulated thread: ") + std::strerror(errno));
    mprotect(memory, guardBytes, PROT_NONE);
    mapped_.push_back(memory);
    return static_cast<char *>(memory) + guardBytes + Fiber::stackBytes;
  }
  void *top = free_.back();
  free_.pop_back();
  return top;
}

StackPool::~StackPool() {
  for (void *memory : mapped_)
    munmap(memory, guardBytes + Fiber::stackBytes);
}

} // namespace tenon::sim
