// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Loader.h"

#include "tenon/base/Error.h"
#include "tenon/base/TileText.h"
#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/cpu/TileEmulation.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

#include <unistd.h>

using namespace llvm;
using namespace llvm::orc;

namespace tenon::cpu {
namespace {

//===--- What compiled code calls ---------------------------------------------------------------------------------===//

void assertFailed(void *context, const char *message, const char *place, int64_t i, int64_t j, int64_t k, int64_t rank,
                  const int64_t *element) {
  int64_t program[] = {i, j, k};
  static_cast<LaunchContext *>(context)->assertFailed(
      assertionText(message, place, program, {element, static_cast<size_t>(rank)}));
}

/// One element as it lies in scratch memory.
std::string elementText(const std::string &type, const void *data, int64_t at) {
  auto read = [&]<class T>(T) { return static_cast<const T *>(data)[at]; };
  if (type == "f64") return numberText(read(double()));
  if (type == "f32") return numberText(read(float()));
  if (type == "bool") return read(uint8_t()) ? "true" : "false";
  if (type == "i64") return std::to_string(read(int64_t()));
  if (type == "i32") return std::to_string(read(int32_t()));
  if (type == "i16") return std::to_string(read(int16_t()));
  if (type == "i8") return std::to_string(read(int8_t()));
  if (type == "u64") return std::to_string(read(uint64_t()));
  if (type == "u32") return std::to_string(read(uint32_t()));
  if (type == "u16") return std::to_string(read(uint16_t()));
  return std::to_string(read(uint8_t()));
}

void print(void *context, const char *label, const char *description, const void *data, int64_t i, int64_t j, int64_t k) {
  std::istringstream words(description);
  std::string type;
  words >> type;
  std::vector<int64_t> shape;
  for (int64_t extent; words >> extent;)
    shape.push_back(extent);
  int64_t program[] = {i, j, k};
  std::string text = tileText(shape, [&](int64_t at) { return elementText(type, data, at); });
  static_cast<LaunchContext *>(context)->print(std::string(label) + " " + tupleText(program) + ": " + text);
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

struct LinkedObject::Impl {
  JITDylib *library;
};

LinkedObject::LinkedObject(std::span<const char> object, std::span<const ExternalSymbol> symbols)
    : impl_(std::make_unique<Impl>()) {
  static std::atomic<uint64_t> next;
  auto &[session, linker] = Session::get();
  impl_->library = &session.createBareJITDylib("kernel" + std::to_string(next++));
  // libm and the compiler's own helpers come from this process.
  impl_->library->addGenerator(check(DynamicLibrarySearchGenerator::GetForCurrentProcess(/*GlobalPrefix=*/'\0')));
  SymbolMap defined;
  for (const ExternalSymbol &symbol : symbols)
    defined[session.intern(symbol.name)] = {ExecutorAddr::fromPtr(symbol.address),
                                            JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  check(impl_->library->define(absoluteSymbols(defined)));
  check(linker.add(*impl_->library,
                   MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernel")));
}

LinkedObject::~LinkedObject() { consumeError(Session::get().session.removeJITDylib(*impl_->library)); }

void *LinkedObject::address(const char *name) const {
  ExecutionSession &session = Session::get().session;
  return check(session.lookup({impl_->library}, session.intern(name))).getAddress().toPtr<void *>();
}

namespace {

/// From where on a result is better written past the cache. Whoever reads it next then has it from memory, but its
/// lines need not be read before they are written. Half of the last-level cache, since what it is made from passes
/// through there as well; no more than 32 MiB of a cache that others share. Where that cache is nearly as far away as
/// memory (Isa::bringsRows), three quarters of an L2 for each processor (threads of one core count as two): where a
/// kernel and the one that reads its result took as long either way, on two processors and on 16 (docs/cpu-learned.md).
int64_t findStreamingBytes() {
  constexpr int64_t mebibyte = int64_t(1) << 20;
  int64_t last = ::sysconf(_SC_LEVEL3_CACHE_SIZE), second = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  int64_t bytes = last > 0 ? std::clamp(last / 2, 4 * mebibyte, 32 * mebibyte) : 16 * mebibyte;
  if (second <= 0 || !selectIsa("native").bringsRows)
    return bytes;
  return std::min<int64_t>(bytes, second / 4 * 3 * std::max(std::thread::hardware_concurrency(), 2u));
}

std::span<const ExternalSymbol> kernelSymbols() {
  static const std::vector<ExternalSymbol> all = [] {
    static int64_t streamingBytes = findStreamingBytes();
    std::vector<ExternalSymbol> symbols = {{"tenon_streaming_bytes", &streamingBytes},
                                           {"tenon_assert_failed", reinterpret_cast<void *>(&assertFailed)},
                                           {"tenon_print", reinterpret_cast<void *>(&print)}};
    symbols.insert(symbols.end(), tileEmulation().begin(), tileEmulation().end());
    return symbols;
  }();
  return all;
}

} // namespace

LoadedObject::LoadedObject(std::span<const char> object)
    : code_(object, kernelSymbols()), run_(reinterpret_cast<RunFunction>(code_.address(runSymbol))),
      plan_(reinterpret_cast<PlanFunction>(code_.address(planSymbol))),
      noteBytes_(static_cast<const int64_t *>(code_.address(noteBytesSymbol))) {}

} // namespace tenon::cpu
