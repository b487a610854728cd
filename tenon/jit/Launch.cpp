// SPDX-License-Identifier: Apache-2.0
//
// A launch: bind the arguments, find the specialisation they need (compiling it the first time), check, run. What has
// been compiled before is found and run without allocating anything.
#include "tenon/jit/Count.h"
#include "tenon/jit/KernelCache.h"
#include "tenon/jit/Lines.h"

#include "tenon/profile/Profile.h"
#include "tenon/profile/Recorder.h"
#include "tenon/runtime/Workspace.h"
#include "tenon/runtime/cuda/CudaStream.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace tenon {
namespace {

using jit::Binding;
using jit::Executable;
using jit::KernelCache;

/// For profiles: what these arguments have that those of the compilation before had not.
std::string whyCompiled(const Kernel &kernel, std::span<const uint64_t> before, std::span<const uint64_t> now) {
  if (before.empty())
    return "the first launch of this kernel";
  const std::vector<KernelParameter> &parameters = kernel.parameters();
  if (before.size() == now.size())
    for (size_t i = 0; i < parameters.size(); ++i)
      if (size_t at = now.size() - parameters.size() + i; before[at] != now[at])
        return parameters[i].kind == ParameterKind::param
                   ? "parameter '" + parameters[i].name + "' has another value"
                   : "argument '" + parameters[i].name + "' has another type, rank, stride or alignment";
  return "other options, another target or device, or tensors that overlap";
}

/// With a report, it is told how this came to be.
const std::shared_ptr<Executable> &executableFor(const Kernel &kernel, KernelCache &cache, const Binding &binding,
                                                 const LaunchOptions &options, int device, CompileReport *report) {
  if (const std::shared_ptr<Executable> *found = cache.find(binding.key())) [[likely]] {
    if (report) {
      report->fromMemory = true;
      report->remarks = (*found)->info.remarks;
      if (options.target == Target::cuda || options.target == Target::sim)
        report->gpu = jit::gpuReport((*found)->info.gpu);
    }
    return *found;
  }
  return cache.findOrMake(binding.key(), [&] {
    CompileOptions compile = options.compile;
    if (options.target == Target::cuda) {
      compile.device = device;
      compile.gpu = cudaProperties(device).architecture();
    }
    CompileReport unused;
    CompileReport &told = report ? *report : unused;
    profile::Span span(profile::Kind::compile, kernel.name());
    auto made = jit::compileKernel(kernel, binding.specialization(), compile, told, nullptr);
    if (span)
      span.explain(whyCompiled(kernel, cache.newestKey(), binding.key()) +
                   (told.fromDisk ? "; loaded from the disk cache" : "; compiled"));
    return made;
  });
}

void checkPromises(const Kernel &kernel, const Binding &binding, const Executable &executable) {
  if (!executable.info.promisesNoOverlap || binding.noOverlap())
    return;
  std::vector<std::string> names;
  for (const KernelParameter &parameter : kernel.parameters())
    if (parameter.kind != ParameterKind::param)
      names.push_back(parameter.name);
  for (size_t i = 0; i < binding.tensors.size(); ++i)
    for (size_t j = 0; j < binding.tensors.size(); ++j)
      if (i != j && executable.info.written[i] && binding.tensors[i] && binding.tensors[j] &&
          binding.tensors[i]->overlaps(*binding.tensors[j]))
        throw Error("kernel " + kernel.name() + " promises that no output overlaps another view, but '" + names[i] +
                    "' overlaps '" + names[j] + "'");
}

using DeviceWorkspace = std::optional<cuda::CudaStream::Workspace>;

/// Row-major views of memory for the workspaces, appended to the words. On the CPU the memory is the thread's, and all of
/// it zero; on a device the stream's, to be let go of once the kernel is queued.
DeviceWorkspace addWorkspaces(const Executable &executable, const Executable::Plan &plan, Stream *stream,
                              llvm::SmallVectorImpl<int64_t> &words) {
  constexpr size_t alignment = 64;
  // What is to be zero comes first, then what may be anything; what is kept zero lies elsewhere.
  std::array<size_t, 3> totals{};
  llvm::SmallVector<size_t, 4> offsets;
  for (size_t i = 0; i < plan.workspaces.size(); ++i) {
    size_t bytes = executable.info.workspaces[i].elementBytes;
    for (int64_t size : plan.workspaces[i])
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes) || bytes > (size_t(1) << 46))
        throw Error("kernel " + executable.info.name + " asks for a workspace with a dimension of " +
                    std::to_string(size) + " elements, which cannot be had");
    size_t &total = totals[static_cast<size_t>(executable.info.workspaces[i].initial)];
    offsets.push_back(total);
    total += (bytes + alignment - 1) / alignment * alignment;
  }
  auto [zero, anything, restored] = totals;
  DeviceWorkspace onDevice;
  std::array<char *, 3> memory{};
  if (!stream) {
    memory[0] = static_cast<char *>(zeroedWorkspace(zero + anything + restored));
    memory[2] = memory[0] + zero + anything;
  } else if (zero + anything + restored) {
    onDevice = cuda::CudaStream::of(*stream).workspace(zero, anything, restored);
    memory[0] = static_cast<char *>(onDevice->data());
    memory[2] = static_cast<char *>(onDevice->restored());
  }
  memory[1] = memory[0] + zero;
  for (size_t i = 0; i < plan.workspaces.size(); ++i) {
    const auto &sizes = plan.workspaces[i];
    char *begin = memory[static_cast<size_t>(executable.info.workspaces[i].initial)];
    words.push_back(reinterpret_cast<int64_t>(begin + offsets[i]));
    words.append(sizes.begin(), sizes.end());
    words.append(sizes.size(), 1);
    int64_t *strides = words.end() - sizes.size();
    for (size_t d = sizes.size() - 1; d-- > 0;)
      strides[d] = strides[d + 1] * sizes[d + 1];
  }
  return onDevice;
}

} // namespace

void jit::runNow(const Executable &executable, llvm::SmallVectorImpl<int64_t> &words,
                 const Executable::RunOptions &options) {
  Executable::Plan plan = executable.plan(words);
  if (!plan.refusal.empty())
    throw Error(plan.refusal);
  int64_t instances = 1;
  for (int64_t extent : plan.grid)
    if (extent <= 0)
      return;
  for (int64_t extent : plan.grid)
    if (__builtin_mul_overflow(instances, extent, &instances))
      throw Error("a grid of " + std::to_string(plan.grid[0]) + " x " + std::to_string(plan.grid[1]) + " x " +
                  std::to_string(plan.grid[2]) + " instances is more than 2^63");
  DeviceWorkspace workspace;
  if (!plan.workspaces.empty())
    workspace = addWorkspaces(executable, plan, options.stream, words);
  profile::Span span(options.stream ? profile::Kind::submit : profile::Kind::run, executable.info.name);
  if (span)
    span->launch = options.launch;
  executable.run(plan, words, options);
}

namespace {

/// Where the tensors are. They must be in one place, which is the CPU's memory unless the target is a CUDA device. A
/// launch of none is on the stream's device.
Device deviceOf(const Kernel &kernel, const Arguments &arguments, Target target, const Stream *stream) {
  std::optional<Device> found;
  for (const Argument &argument : arguments) {
    if (!argument.isTensor())
      continue;
    Device device = argument.tensor().device();
    if (found && *found != device)
      throw Error("the tensors of a launch of kernel " + kernel.name() + " are on different devices: " + found->str() +
                  " and " + device.str());
    found = device;
  }
  if (found && found->isCuda() && target != Target::cuda)
    throw Error("the tensors of a launch of kernel " + kernel.name() + " are on " + found->str() +
                ", and its target is " + std::string(nameOf(target)));
  return found.value_or(target == Target::cuda && stream ? stream->device() : Device::cpu());
}

/// For profiles: the work of a launch. Counted once for each executable and sizes, which takes about a millisecond;
/// afterwards found by what the count depends on.
struct CountedWork {
  double flops = 0, bytes = 0;
};
CountedWork workOf(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options,
                   const Binding &binding, const Executable &executable) {
  thread_local std::unordered_map<uint64_t, CountedWork> counted;
  uint64_t hash = reinterpret_cast<uintptr_t>(&executable);
  auto add = [&](int64_t word) { hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u; };
  const int64_t *word = binding.words.data();
  for (const Tensor *tensor : binding.tensors) {
    int64_t words = tensor ? 1 + 2 * tensor->rank() : 1;
    for (int64_t i = tensor ? 1 : 0; i < words; ++i) // not the address
      add(word[i]);
    word += words;
  }
  auto [entry, isNew] = counted.try_emplace(hash);
  if (isNew) {
    profile::Span span(profile::Kind::phase, "counting");
    try {
      model::Counts counts = jit::countPlan(kernel, arguments, options).count(binding.words);
      entry->second = {counts.useful.flops(), counts.bytes()};
    } catch (const Error &) { // then it is not known
    }
  }
  return entry->second;
}

/// For profiles: where it runs and which memory it touches. Returns the launch's number.
uint64_t describeLaunch(profile::Span &span, Device device, const Binding &binding, const Executable &executable) {
  span->launch = profile::nextLaunch();
  span->device = static_cast<int8_t>(device.isCuda() ? device.ordinal : -1);
  for (size_t i = 0; i < binding.tensors.size(); ++i)
    if (const Tensor *tensor = binding.tensors[i])
      span.addMemory(tensor->data(), static_cast<uint64_t>(tensor->elements()) * sizeOf(tensor->dtype()),
                     executable.info.written[i]);
  return span->launch;
}

/// A launch that becomes part of a graph. The kernel may be gone when the graph runs, so its code is kept; and it is
/// counted now, for profiles of any time later: what the kernel's function refers to may be gone as well.
template <class Run>
void captureInto(cuda::Capture &capture, const std::shared_ptr<Executable> &executable, const CountedWork &work,
                 Run run) {
  capture.kept.push_back(executable);
  size_t before = capture.kernels.size();
  run();
  if (capture.kernels.size() > before) { // it has program instances
    capture.kernels.back().bytes = work.bytes;
    capture.kernels.back().flops = work.flops;
  }
}

/// For profiles: tells of a launch that ends in an exception.
class FailureMark {
public:
  explicit FailureMark(profile::Span &span) : span_(span), before_(span ? std::uncaught_exceptions() : 0) {}
  ~FailureMark() {
    if (span_ && std::uncaught_exceptions() > before_)
      span_.explain(ProfileEvent::failed);
  }

private:
  profile::Span &span_;
  int before_;
};

/// A launch of tensors that are where it runs. What was launched stays in the cache.
const Executable &launchOn(Device device, const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  profile::Span span(profile::Kind::launch, kernel.name());
  FailureMark mark(span);
  int ordinal = device.isCuda() ? device.ordinal : options.compile.device;
  KernelCache &cache = KernelCache::of(kernel);
  Binding binding(kernel, cache.signature, arguments, options, ordinal, jit::isGpu(options.target));
  for (const Tensor *tensor : binding.tensors)
    if (tensor)
      tensor->checkInsideBuffer();
  const std::shared_ptr<Executable> &executable = executableFor(kernel, cache, binding, options, ordinal, nullptr);
  checkPromises(kernel, binding, *executable);
  Executable::RunOptions run;
  run.threads = options.threads;
  if (device.isCuda()) {
    run.stream = options.stream ? options.stream : &jit::defaultStream(ordinal);
    run.wait = !options.stream;
    if (cuda::CudaStream::capture && cuda::CudaStream::of(*run.stream).isCapturing()) [[unlikely]] {
      CountedWork work = workOf(kernel, arguments, options, binding, *executable);
      if (span)
        span.explain(ProfileEvent::captured);
      captureInto(*cuda::CudaStream::capture, executable, work, [&] { runNow(*executable, binding.words, run); });
      return *executable;
    }
  }
  if (span) [[unlikely]] {
    run.launch = describeLaunch(span, device, binding, *executable);
    CountedWork work = workOf(kernel, arguments, options, binding, *executable);
    span->flops = work.flops;
    if (work.bytes > 0)
      span->bytes = static_cast<uint64_t>(work.bytes);
  }
  if (!options.stream || device.isCuda()) {
    runNow(*executable, binding.words, run);
    return *executable;
  }
  // Refuse now what can be refused now; the arguments stay alive until the work is done.
  if (std::string refusal = executable->plan(binding.words).refusal; !refusal.empty())
    throw Error(refusal);
  std::vector<int64_t> words(binding.words.begin(), binding.words.end());
  options.stream->enqueue([executable, words = std::move(words), run, keep = arguments] {
    llvm::SmallVector<int64_t, 256> all(words.begin(), words.end());
    runNow(*executable, all, run);
  });
  return *executable;
}

/// A launch on a device of tensors that are on the host. Memory that tensors share, whoever they borrow it from, is one
/// copy there, at an address of the same alignment, so that strides and overlaps stay as they are. Only what the kernel
/// writes comes back: the rest may be constant, or in use by others.
void launchOnCopies(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  if (options.stream)
    throw Error("a launch on a stream of a CUDA device needs its tensors there: copy them with Tensor::to()");
  constexpr uintptr_t alignment = 256;
  Device device = Device::cuda(options.compile.device);
  struct Mirror {
    uintptr_t low, high;
    Tensor memory;
    void *at(uintptr_t host) const {
      return static_cast<char *>(memory.data()) + low % alignment + (host - low);
    }
    Tensor bytes(void *begin, Device where) const {
      auto size = static_cast<int64_t>(high - low);
      return Tensor::borrow(begin, high - low, DType::u8, {size}, {}, {}, where);
    }
    Tensor onHost() const { return bytes(reinterpret_cast<void *>(low), Device::cpu()); }
    Tensor onDevice() const { return bytes(at(low), memory.device()); }
  };
  std::vector<Mirror> ranges, mirrors;
  for (const Argument &argument : arguments)
    if (argument.isTensor())
      if (auto [low, high] = argument.tensor().addresses(); low < high)
        ranges.push_back({low, high, {}});
  std::sort(ranges.begin(), ranges.end(), [](const Mirror &a, const Mirror &b) { return a.low < b.low; });
  for (const Mirror &range : ranges)
    if (!mirrors.empty() && range.low < mirrors.back().high)
      mirrors.back().high = std::max(mirrors.back().high, range.high);
    else
      mirrors.push_back(range);
  for (Mirror &mirror : mirrors) {
    auto bytes = static_cast<int64_t>(mirror.high - mirror.low + mirror.low % alignment);
    mirror.memory = Tensor::empty(DType::u8, {bytes}, device);
    mirror.onDevice().copyFrom(mirror.onHost());
  }
  auto mirrorOf = [&](const Tensor &tensor) -> Mirror * {
    auto [low, high] = tensor.addresses();
    for (Mirror &mirror : mirrors)
      if (low < high && mirror.low <= low && high <= mirror.high)
        return &mirror;
    return nullptr; // of no elements
  };
  Arguments copies;
  for (const Argument &argument : arguments) {
    if (!argument.isTensor()) {
      copies.push_back(argument);
      continue;
    }
    const Tensor &tensor = argument.tensor();
    Mirror *mirror = mirrorOf(tensor);
    copies.push_back(mirror ? tensor.movedTo(mirror->at(tensor.addresses().first), device)
                            : Tensor::empty(tensor.dtype(), tensor.sizes(), device));
  }
  const Executable &executable = launchOn(device, kernel, copies, options);
  std::set<Mirror *> changed;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isTensor() && executable.info.written[i])
      changed.insert(mirrorOf(arguments[i].tensor()));
  changed.erase(nullptr);
  for (const Mirror *mirror : changed)
    mirror->onHost().copyFrom(mirror->onDevice());
}

} // namespace

std::string_view nameOf(Target target) {
  switch (target) {
  case Target::cpu: return "cpu";
  case Target::interpreter: return "interpreter";
  case Target::sim: return "sim";
  case Target::cuda: return "cuda";
  }
  return "";
}

std::optional<Target> parseTarget(std::string_view name) {
  for (Target target : {Target::cpu, Target::interpreter, Target::sim, Target::cuda})
    if (nameOf(target) == name)
      return target;
  return std::nullopt;
}

double CompileReport::milliseconds() const {
  double total = 0;
  for (const Phase &phase : phases)
    total += phase.milliseconds;
  return total;
}

void launch(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  Device device = deviceOf(kernel, arguments, options.target, options.stream);
  if (options.target != Target::cuda || device.isCuda()) {
    launchOn(device, kernel, arguments, options);
    return;
  }
  cudaProperties(options.compile.device); // there must be such a device
  for (const Argument &argument : arguments)
    if (argument.isTensor())
      argument.tensor().checkInsideBuffer();
  launchOnCopies(kernel, arguments, options);
}

CompileReport prepare(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  int ordinal = options.compile.device;
  if (options.target == Target::cuda)
    if (Device device = deviceOf(kernel, arguments, options.target, options.stream); device.isCuda())
      ordinal = device.ordinal;
  KernelCache &cache = KernelCache::of(kernel);
  Binding binding(kernel, cache.signature, arguments, options, ordinal, jit::isGpu(options.target));
  CompileReport report;
  executableFor(kernel, cache, binding, options, ordinal, &report);
  return report;
}

const std::vector<PhaseInfo> &compilePhases() {
  static const std::vector<PhaseInfo> phases = {
      {"tile", "Tile IR as traced from C++"},
      {"simplified", "Tile IR after the passes that hold for every target"},
      {"loops", "loop nests over vectors"},
      {"llvm-dialect", "the same in MLIR's llvm dialect, maths functions expanded"},
      {"llvm", "LLVM IR"},
      {"optimized", "LLVM IR after optimisation"},
      {"asm", "machine code as assembly"},
      {"layouts", "NVIDIA GPU: Tile IR, every tile with its layout over threads", true},
      {"threads", "NVIDIA GPU: what one thread does", true},
      {"ptx", "NVIDIA GPU: PTX", true},
      {"sass", "NVIDIA GPU: machine code (needs ptxas and a disassembler)", true},
  };
  return phases;
}

namespace {

std::string emitText(const Kernel &kernel, const Arguments &arguments, std::string_view phase,
                     const LaunchOptions &wanted, CompileReport *report, bool withLines) {
  std::string names;
  bool known = false, isGpuPhase = false;
  for (const PhaseInfo &info : compilePhases()) {
    names += (names.empty() ? "" : ", ") + info.name;
    known |= info.name == phase;
    isGpuPhase |= info.name == phase && info.isGpu;
  }
  if (!known)
    throw Error("unknown phase '" + std::string(phase) + "': the phases are " + names);
  LaunchOptions options = wanted;
  if (options.target == Target::cuda)
    options.compile.gpu = cudaProperties(options.compile.device).architecture();
  else if (isGpuPhase)
    options.target = Target::sim; // that is: without a device
  Binding binding(kernel, KernelCache::of(kernel).signature, arguments, options, options.compile.device,
                  jit::isGpu(options.target));
  CompileReport made;
  jit::EmitRequest request{std::string(phase), "", report != nullptr, withLines};
  jit::compileKernel(kernel, binding.specialization(), options.compile, made, &request);
  if (report)
    *report = std::move(made);
  return request.text;
}

} // namespace

std::string emit(const Kernel &kernel, const Arguments &arguments, std::string_view phase,
                 const LaunchOptions &options, CompileReport *report) {
  return emitText(kernel, arguments, phase, options, report, /*withLines=*/false);
}

std::string jit::emitWithLines(const Kernel &kernel, const Arguments &arguments, std::string_view phase,
                               const LaunchOptions &options) {
  return emitText(kernel, arguments, phase, options, nullptr, /*withLines=*/true);
}

} // namespace tenon
