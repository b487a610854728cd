// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Loader.h"

#include "tenon/base/Error.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <sstream>

using namespace llvm;
using namespace llvm::orc;

namespace tenon::cpu {
namespace {

std::string ids(int64_t i, int64_t j, int64_t k) {
  return "(" + std::to_string(i) + ", " + std::to_string(j) + ", " + std::to_string(k) + ")";
}

//===--- What compiled code calls ---------------------------------------------------------------------------------===//

void assertFailed(void *context, const char *message, int64_t i, int64_t j, int64_t k) {
  static_cast<LaunchContext *>(context)->assertFailed("assertion failed: " + std::string(message) + ", program " +
                                                      ids(i, j, k));
}

std::string element(const std::string &type, const void *data, int64_t at) {
  auto text = [](auto value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  if (type == "f64") return text(static_cast<const double *>(data)[at]);
  if (type == "f32") return text(static_cast<const float *>(data)[at]);
  if (type == "bool") return static_cast<const uint8_t *>(data)[at] ? "true" : "false";
  if (type == "i64") return text(static_cast<const int64_t *>(data)[at]);
  if (type == "i32") return text(static_cast<const int32_t *>(data)[at]);
  if (type == "i16") return text(static_cast<const int16_t *>(data)[at]);
  if (type == "i8") return text(static_cast<int>(static_cast<const int8_t *>(data)[at]));
  if (type == "u64") return text(static_cast<const uint64_t *>(data)[at]);
  if (type == "u32") return text(static_cast<const uint32_t *>(data)[at]);
  if (type == "u16") return text(static_cast<const uint16_t *>(data)[at]);
  return text(static_cast<unsigned>(static_cast<const uint8_t *>(data)[at]));
}

/// Nested brackets, row-major, at most 64 elements.
void printTile(std::string &out, const std::string &type, const std::vector<int64_t> &shape, size_t dim,
               const void *data, int64_t &at) {
  if (dim == shape.size()) {
    out += element(type, data, at++);
    return;
  }
  out += "[";
  for (int64_t i = 0; i < shape[dim]; ++i) {
    if (at >= 64) {
      out += i ? ", ..." : "...";
      break;
    }
    out += i ? ", " : "";
    printTile(out, type, shape, dim + 1, data, at);
  }
  out += "]";
}

void print(void *context, const char *label, const char *description, const void *data, int64_t i, int64_t j, int64_t k) {
  std::istringstream words(description);
  std::string type;
  words >> type;
  std::vector<int64_t> shape;
  for (int64_t extent; words >> extent;)
    shape.push_back(extent);
  std::string text = std::string(label) + " " + ids(i, j, k) + ": ";
  int64_t at = 0;
  printTile(text, type, shape, 0, data, at);
  static_cast<LaunchContext *>(context)->print(text);
}

//===--- One linker for the process -------------------------------------------------------------------------------===//

template <class T> T check(Expected<T> value) {
  if (!value)
    throw InternalError("linking compiled code: " + toString(value.takeError()));
  return static_cast<T &&>(*value);
}
void check(llvm::Error error) {
  if (error)
    throw InternalError("linking compiled code: " + toString(std::move(error)));
}

/// The linker alone, without the compile layers of LLVM's ready-made JIT, which cost milliseconds to set up.
struct Session {
  ExecutionSession session;
  ObjectLinkingLayer linker;

  Session()
      : session(check(SelfExecutorProcessControl::Create())),
        linker(session, session.getExecutorProcessControl().getMemMgr()) {}

  static Session &get() {
    // Never destroyed: kernels are often globals of other files, and unload their code when the process ends.
    static Session *instance = new Session();
    return *instance;
  }
};

} // namespace

struct LoadedObject::Impl {
  JITDylib *library;
};

LoadedObject::LoadedObject(std::span<const char> object) : impl_(std::make_unique<Impl>()) {
  static std::atomic<uint64_t> next;
  auto &[session, linker] = Session::get();
  impl_->library = &session.createBareJITDylib("kernel" + std::to_string(next++));
  // libm and the compiler's own helpers come from this process; our two functions by address.
  impl_->library->addGenerator(check(DynamicLibrarySearchGenerator::GetForCurrentProcess(/*GlobalPrefix=*/'\0')));
  SymbolMap symbols;
  auto define = [&](const char *name, auto *function) {
    symbols[session.intern(name)] = {ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
  define("tenon_assert_failed", &assertFailed);
  define("tenon_print", &print);
  check(impl_->library->define(absoluteSymbols(symbols)));
  check(linker.add(*impl_->library,
                   MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernel")));
  auto address = [&](const char *name) {
    return check(session.lookup({impl_->library}, session.intern(name))).getAddress();
  };
  run_ = address(runSymbol).toPtr<RunFunction>();
  plan_ = address(planSymbol).toPtr<PlanFunction>();
}

LoadedObject::~LoadedObject() { consumeError(Session::get().session.removeJITDylib(*impl_->library)); }

} // namespace tenon::cpu
