// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Loader.h"

#include "tenon/base/Error.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

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

//===--- One JIT for the process ----------------------------------------------------------------------------------===//

template <class T> T check(Expected<T> value) {
  if (!value)
    throw InternalError("linking compiled code: " + toString(value.takeError()));
  return static_cast<T &&>(*value);
}
void check(llvm::Error error) {
  if (error)
    throw InternalError("linking compiled code: " + toString(std::move(error)));
}

LLJIT &jit() {
  static std::unique_ptr<LLJIT> instance = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return check(LLJITBuilder().setNumCompileThreads(0).create());
  }();
  return *instance;
}

} // namespace

struct LoadedObject::Impl {
  JITDylib *library;
};

LoadedObject::LoadedObject(std::span<const char> object) : impl_(std::make_unique<Impl>()) {
  static std::atomic<uint64_t> next;
  LLJIT &j = jit();
  impl_->library = &check(j.createJITDylib("kernel" + std::to_string(next++)));
  // libm and the compiler's own helpers come from this process; our two functions by address.
  impl_->library->addGenerator(check(DynamicLibrarySearchGenerator::GetForCurrentProcess(j.getDataLayout().getGlobalPrefix())));
  SymbolMap symbols;
  auto define = [&](const char *name, auto *function) {
    symbols[j.mangleAndIntern(name)] = {ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
  define("tenon_assert_failed", &assertFailed);
  define("tenon_print", &print);
  check(impl_->library->define(absoluteSymbols(symbols)));
  check(j.addObjectFile(*impl_->library,
                        MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernel")));
  run_ = check(j.lookup(*impl_->library, runSymbol)).toPtr<RunFunction>();
  plan_ = check(j.lookup(*impl_->library, planSymbol)).toPtr<PlanFunction>();
}

LoadedObject::~LoadedObject() {
  if (impl_->library)
    consumeError(jit().getExecutionSession().removeJITDylib(*impl_->library));
}

} // namespace tenon::cpu
