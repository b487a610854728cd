// SPDX-License-Identifier: Apache-2.0
//
// One small kernel, written in PTX so that the runtime needs no compiler, copies between any two views or fills one.
// All its arithmetic is 64-bit. It is for moving tensors about, not for speed: kernels read views as they are.
#include "tenon/runtime/cuda/StridedCopy.h"

#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace tenon::cuda {
namespace {

/// The kernel's parameters, in this order. A null `from` means fill.
struct Parameters {
  uint64_t to, from, pattern, elementBytes, count;
  int64_t sizes[4]; ///< of dimensions 1 to 4; that of dimension 0 follows from the count
  int64_t toStrides[5], fromStrides[5];
};
constexpr int toParameter = 0, fromParameter = 1, patternParameter = 2, bytesParameter = 3, countParameter = 4,
              firstSize = 5, firstToStride = 9, firstFromStride = 14, parameterCount = 19;
static_assert(sizeof(Parameters) == 8 * parameterCount);

std::string parameter(int index) { return "p" + std::to_string(index); }

/// Thread t of n handles elements t, t + n, ...: an element's row-major index gives its coordinates, innermost first.
std::string kernelText() {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n\n.visible .entry tenon_strided(\n";
  for (int i = 0; i < parameterCount; ++i)
    text += "  .param .u64 " + parameter(i) + (i + 1 < parameterCount ? ",\n" : "\n");
  auto load = [](const char *to, int index) {
    return std::string("  ld.param.u64 ") + to + ", [" + parameter(index) + "];\n";
  };
  text += R"() {
  .reg .pred %done, %fill, %size<9>, %load<9>;
  .reg .b32 %block, %width, %thread, %blocks;
  .reg .b64 %i, %step, %count, %bytes, %pattern, %rest, %at, %n, %stride, %to, %from, %to0, %from0, %value;
)" + load("%to0", toParameter) + load("%from0", fromParameter) + load("%pattern", patternParameter) +
          load("%bytes", bytesParameter) + load("%count", countParameter);
  text += "  setp.eq.u64 %fill, %from0, 0;\n";
  for (const char *bytes : {"1", "2", "4", "8"})
    text += std::string("  setp.eq.u64 %size") + bytes + ", %bytes, " + bytes + ";\n  not.pred %load" + bytes +
            ", %fill;\n  and.pred %load" + bytes + ", %load" + bytes + ", %size" + bytes + ";\n";
  text += R"(  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %width;
  cvt.u64.u32 %at, %thread;
  add.u64 %i, %i, %at;
  mul.wide.u32 %step, %blocks, %width;
next:
  setp.ge.u64 %done, %i, %count;
  @%done bra end;
  mov.u64 %rest, %i;
  mov.u64 %to, %to0;
  mov.u64 %from, %from0;
)";
  for (int d = 4; d >= 0; --d) {
    if (d > 0)
      text += load("%n", firstSize + d - 1) + "  rem.u64 %at, %rest, %n;\n  div.u64 %rest, %rest, %n;\n";
    else
      text += "  mov.u64 %at, %rest;\n";
    text += load("%stride", firstToStride + d) + "  mad.lo.s64 %to, %at, %stride, %to;\n" +
            load("%stride", firstFromStride + d) + "  mad.lo.s64 %from, %at, %stride, %from;\n";
  }
  text += R"(  mov.u64 %value, %pattern;
  @%load1 ld.u8 %value, [%from];
  @%load2 ld.u16 %value, [%from];
  @%load4 ld.u32 %value, [%from];
  @%load8 ld.u64 %value, [%from];
  @%size1 st.u8 [%to], %value;
  @%size2 st.u16 [%to], %value;
  @%size4 st.u32 [%to], %value;
  @%size8 st.u64 [%to], %value;
  add.u64 %i, %i, %step;
  bra next;
end:
  ret;
}
)";
  return text;
}

/// Loaded on each device by its first use, and kept.
const Function &kernelOn(Gpu &gpu) {
  static std::mutex mutex;
  static auto &kernels = *new std::map<int, Function>;
  std::lock_guard lock(mutex);
  auto found = kernels.find(gpu.ordinal());
  if (found == kernels.end())
    found = kernels.emplace(gpu.ordinal(), Function(Module::fromPtx(gpu, kernelText()), "tenon_strided")).first;
  return found->second;
}

void run(Gpu &gpu, const std::array<int64_t, 5> &sizes, Parameters &parameters, const char *doing) {
  parameters.count = 1;
  for (int64_t size : sizes)
    parameters.count *= static_cast<uint64_t>(size);
  if (parameters.count == 0)
    return;
  std::copy(sizes.begin() + 1, sizes.end(), parameters.sizes);
  gpu.checkUsable();
  const Function &kernel = kernelOn(gpu);
  CurrentContext current(gpu);
  StreamHandle stream = gpu.transferStream();
  gpu.orderAfterQueuedWork(stream);
  constexpr unsigned width = 256;
  uint64_t most = 8 * static_cast<uint64_t>(std::max(gpu.properties().multiprocessors, 1));
  auto blocks = static_cast<unsigned>(std::min(most, (parameters.count + width - 1) / width));
  size_t bytes = sizeof parameters;
  auto key = [](uintptr_t value) { return reinterpret_cast<void *>(value); };
  void *extra[] = {key(launchParamPointer), &parameters, key(launchParamSize), &bytes, key(launchParamEnd)};
  gpu.check(gpu.api().cuLaunchKernel(kernel.handle(), blocks, 1, 1, width, 1, 1, 0, stream, nullptr, extra), doing);
  gpu.check(gpu.api().cuStreamSynchronize(stream), doing);
}

} // namespace

void copyStrided(Gpu &gpu, const std::array<int64_t, 5> &sizes, const StridedElements &to, const StridedElements &from,
                 uint64_t elementBytes) {
  Parameters parameters{};
  parameters.to = reinterpret_cast<uintptr_t>(to.data);
  parameters.from = reinterpret_cast<uintptr_t>(from.data);
  parameters.elementBytes = elementBytes;
  std::copy(to.strides.begin(), to.strides.end(), parameters.toStrides);
  std::copy(from.strides.begin(), from.strides.end(), parameters.fromStrides);
  run(gpu, sizes, parameters, "copying a strided view");
}

void fillStrided(Gpu &gpu, const std::array<int64_t, 5> &sizes, const StridedElements &to, uint64_t pattern,
                 uint64_t elementBytes) {
  Parameters parameters{};
  parameters.to = reinterpret_cast<uintptr_t>(to.data);
  parameters.pattern = pattern;
  parameters.elementBytes = elementBytes;
  std::copy(to.strides.begin(), to.strides.end(), parameters.toStrides);
  run(gpu, sizes, parameters, "filling a strided view");
}

} // namespace tenon::cuda
