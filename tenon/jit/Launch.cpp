// SPDX-License-Identifier: Apache-2.0
//
// A launch: bind the arguments, find the specialisation they need (compiling it the first time), check, run.
#include "tenon/jit/Compiler.h"

#include "tenon/runtime/Workspace.h"

#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

namespace tenon {
namespace {

using jit::Executable;
using jit::Specialization;

/// What was compiled for one kernel in this process.
struct KernelCache {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<Executable>> executables;
};

KernelCache &cacheOf(const Kernel &kernel) {
  static std::mutex creation;
  std::lock_guard lock(creation);
  std::shared_ptr<void> &slot = kernel.compiled();
  if (!slot)
    slot = std::make_shared<KernelCache>();
  return *static_cast<KernelCache *>(slot.get());
}

std::string describe(const Kernel &kernel) {
  std::string text = kernel.name() + "(";
  for (size_t i = 0; i < kernel.parameters().size(); ++i)
    text += (i ? ", " : "") + kernel.parameters()[i].name;
  return text + ")";
}

const char *kindName(ParameterKind kind) {
  switch (kind) {
  case ParameterKind::view: return "a tensor";
  case ParameterKind::index: return "an integer";
  case ParameterKind::scalar: return "a number";
  case ParameterKind::param: return "a parameter";
  }
  return "";
}

/// Arguments brought into the form of a launch: what is specialised on, and the words that compiled code reads.
struct Binding {
  Specialization specialization;
  std::vector<int64_t> words;
  std::vector<const Tensor *> tensors; ///< per function argument; null for scalars
};

/// The largest power of two, up to 16, that a number is a multiple of.
int64_t powerOfTwoIn(int64_t value) { return value ? std::min<int64_t>(value & -value, 16) : 16; }

/// What a GPU's code may rely on (tile.divisible). Differences that code does not depend on would compile it again: only
/// whether 16 bytes fit is asked of addresses and strides.
std::vector<int64_t> divisibleOf(const Tensor &tensor) {
  std::vector<int64_t> facts = {powerOfTwoIn(reinterpret_cast<int64_t>(tensor.data()))};
  for (int64_t size : tensor.sizes())
    facts.push_back(powerOfTwoIn(size));
  for (int64_t stride : tensor.strides())
    facts.push_back(powerOfTwoIn(stride));
  return facts;
}

Binding bindArguments(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options, bool forGpu) {
  Binding binding;
  binding.specialization.target = options.target;
  binding.specialization.options = options.compile.isa;
  if (forGpu)
    binding.specialization.options += "|" + options.compile.gpu + "|" + std::to_string(options.compile.device) +
                                      jit::gpuOptionsText(options.compile);
  for (const auto &[name, value] : options.params) {
    bool known = false;
    for (const KernelParameter &parameter : kernel.parameters())
      known |= parameter.kind == ParameterKind::param && parameter.name == name;
    if (!known) {
      std::string names;
      for (const KernelParameter &parameter : kernel.parameters())
        if (parameter.kind == ParameterKind::param)
          names += (names.empty() ? "" : ", ") + parameter.name;
      throw Error("unknown parameter '" + name + "' of kernel " + kernel.name() + ": it has " +
                  (names.empty() ? "none" : names));
    }
  }
  size_t wanted = 0, next = 0;
  for (const KernelParameter &parameter : kernel.parameters())
    wanted += parameter.kind != ParameterKind::param;
  if (arguments.size() != wanted)
    throw Error("kernel " + describe(kernel) + " takes " + std::to_string(wanted) + " run-time arguments, not " +
                std::to_string(arguments.size()));
  for (const KernelParameter &parameter : kernel.parameters()) {
    ArgumentSpec spec;
    spec.kind = parameter.kind;
    if (parameter.kind == ParameterKind::param) {
      auto found = options.params.find(parameter.name);
      if (found == options.params.end() && !parameter.defaultValue)
        throw Error("parameter '" + parameter.name + "' of kernel " + kernel.name() + " has no default: set it in params");
      spec.value = found == options.params.end() ? *parameter.defaultValue : found->second;
      binding.specialization.arguments.push_back(spec);
      continue;
    }
    const auto &value = arguments[next++].value();
    auto refuse = [&] {
      throw Error("argument '" + parameter.name + "' of kernel " + kernel.name() + " must be " +
                  kindName(parameter.kind));
    };
    if (parameter.kind == ParameterKind::view) {
      const auto *tensor = std::get_if<Tensor>(&value);
      if (!tensor)
        refuse();
      if (tensor->rank() < 1)
        throw Error("argument '" + parameter.name + "' of kernel " + kernel.name() +
                    " has no dimensions: a view has 1 to 5");
      spec.dtype = tensor->dtype();
      spec.rank = tensor->rank();
      // The last dimension of stride 1.
      for (int d = 0; d < spec.rank; ++d)
        if (tensor->stride(d) == 1)
          spec.unitStride = d;
      spec.distinct = tensor->hasDistinctElements();
      if (forGpu)
        spec.divisible = divisibleOf(*tensor);
      binding.words.push_back(reinterpret_cast<int64_t>(tensor->data()));
      for (int d = 0; d < spec.rank; ++d)
        binding.words.push_back(tensor->size(d));
      for (int d = 0; d < spec.rank; ++d)
        binding.words.push_back(tensor->stride(d));
      binding.tensors.push_back(tensor);
    } else if (parameter.kind == ParameterKind::index) {
      const auto *number = std::get_if<int64_t>(&value);
      if (!number)
        refuse();
      if (forGpu)
        spec.divisible = {powerOfTwoIn(*number)};
      binding.words.push_back(*number);
      binding.tensors.push_back(nullptr);
    } else {
      if (std::holds_alternative<Tensor>(value))
        refuse();
      double number = std::holds_alternative<double>(value) ? std::get<double>(value)
                                                            : static_cast<double>(std::get<int64_t>(value));
      int64_t bits;
      std::memcpy(&bits, &number, 8);
      binding.words.push_back(bits);
      binding.tensors.push_back(nullptr);
    }
    binding.specialization.arguments.push_back(spec);
  }
  return binding;
}

/// Whether any two tensors share bytes. Which of them are written is not known before tracing, so the fact is about all.
bool anyOverlap(const std::vector<const Tensor *> &tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tensors[i] && tensors[j] && tensors[i]->overlaps(*tensors[j]))
        return true;
  return false;
}

std::shared_ptr<Executable> executableFor(const Kernel &kernel, const Specialization &specialization,
                                          const CompileOptions &options, CompileReport *report) {
  KernelCache &cache = cacheOf(kernel);
  std::string text = specialization.text();
  std::lock_guard lock(cache.mutex);
  auto &slot = cache.executables[text];
  if (slot) {
    if (report) {
      report->fromMemory = true;
      report->remarks = slot->info.remarks;
    }
    return slot;
  }
  CompileReport unused;
  return slot = jit::compileKernel(kernel, specialization, options, report ? *report : unused, nullptr);
}

void checkPromises(const Kernel &kernel, const Binding &binding, const Executable &executable) {
  if (!executable.info.promisesNoOverlap || binding.specialization.noOverlap)
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

/// Row-major views of zeroed memory for the workspaces, appended to the words, one block for all of them. On the CPU the
/// memory is the thread's; on a device it is returned, and may be let go once the kernel is queued.
Tensor addWorkspaces(const Executable &executable, const Executable::Plan &plan, Device device,
                     std::vector<int64_t> &words) {
  constexpr size_t alignment = 64;
  std::vector<size_t> offsets;
  size_t total = 0;
  for (size_t i = 0; i < plan.workspaces.size(); ++i) {
    size_t bytes = executable.info.workspaces[i].elementBytes;
    for (int64_t size : plan.workspaces[i])
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes) || bytes > (size_t(1) << 46))
        throw Error("a workspace with a dimension of " + std::to_string(size) + " elements cannot be had");
    offsets.push_back(total);
    total += (bytes + alignment - 1) / alignment * alignment;
  }
  Tensor onDevice;
  char *memory = nullptr;
  if (device.isCpu()) {
    memory = static_cast<char *>(zeroedWorkspace(total));
  } else if (total) {
    onDevice = Tensor::zeros(DType::u8, {static_cast<int64_t>(total)}, device);
    memory = static_cast<char *>(onDevice.data());
  }
  for (size_t i = 0; i < plan.workspaces.size(); ++i) {
    const std::vector<int64_t> &sizes = plan.workspaces[i];
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d-- > 0;)
      strides[d] = strides[d + 1] * sizes[d + 1];
    words.push_back(reinterpret_cast<int64_t>(memory + offsets[i]));
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), strides.begin(), strides.end());
  }
  return onDevice;
}

void runNow(const Executable &executable, std::vector<int64_t> words, Device device,
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
  Tensor workspace = addWorkspaces(executable, plan, device, words);
  executable.run(plan, words, options);
}

/// Where the tensors are. They must be in one place, which is the CPU's memory unless the target is a CUDA device.
Device deviceOf(const Kernel &kernel, const Arguments &arguments, Target target) {
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
    throw Error("the tensors of a launch of kernel " + kernel.name() + " are on " + found->str() + ", and its target is " +
                std::string(nameOf(target)));
  return found.value_or(Device::cpu());
}

/// A launch on a device of tensors that are on the host: their whole buffers go there and come back, so that strides and
/// overlaps stay as they are.
void launchOnCopies(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  if (options.stream)
    throw Error("a launch on a stream of a CUDA device needs its tensors there: copy them with Tensor::to()");
  Device device = Device::cuda(options.compile.device);
  struct Mirror {
    Tensor host, device;
  };
  std::map<const Buffer *, Mirror> mirrors;
  Arguments copies;
  for (const Argument &argument : arguments) {
    if (!argument.isTensor()) {
      copies.push_back(argument);
      continue;
    }
    const Tensor &tensor = argument.tensor();
    auto [found, isNew] = mirrors.try_emplace(tensor.buffer().get());
    Mirror &mirror = found->second;
    if (isNew) {
      auto bytes = static_cast<int64_t>(tensor.bufferBytes());
      mirror.host = Tensor::borrow(tensor.bufferBegin(), tensor.bufferBytes(), DType::u8, {bytes});
      mirror.device = mirror.host.to(device);
    }
    auto offset = static_cast<char *>(tensor.data()) - static_cast<char *>(tensor.bufferBegin());
    copies.push_back(Tensor::borrow(static_cast<char *>(mirror.device.data()) + offset,
                                    tensor.bufferBytes() - static_cast<size_t>(offset), tensor.dtype(), tensor.sizes(),
                                    tensor.strides(), {}, device));
  }
  launch(kernel, copies, options);
  for (auto &[buffer, mirror] : mirrors)
    mirror.host.copyFrom(mirror.device);
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

void launch(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &wanted) {
  LaunchOptions options = wanted;
  Device device = deviceOf(kernel, arguments, options.target);
  if (options.target == Target::cuda) {
    if (device.isCuda())
      options.compile.device = device.ordinal;
    options.compile.gpu = cudaProperties(options.compile.device).architecture();
    if (device.isCpu()) {
      for (const Argument &argument : arguments)
        if (argument.isTensor())
          argument.tensor().checkInsideBuffer();
      return launchOnCopies(kernel, arguments, options);
    }
  }
  Binding binding = bindArguments(kernel, arguments, options, jit::isGpu(options.target));
  for (const Tensor *tensor : binding.tensors)
    if (tensor)
      tensor->checkInsideBuffer();
  binding.specialization.noOverlap = !anyOverlap(binding.tensors);
  std::shared_ptr<Executable> executable = executableFor(kernel, binding.specialization, options.compile, nullptr);
  checkPromises(kernel, binding, *executable);
  Executable::RunOptions run{options.threads, options.target == Target::cuda ? options.stream : nullptr};
  if (!options.stream || options.target == Target::cuda) {
    runNow(*executable, std::move(binding.words), device, run);
    return;
  }
  // Refuse now what can be refused now; the arguments stay alive until the work is done.
  if (std::string refusal = executable->plan(binding.words).refusal; !refusal.empty())
    throw Error(refusal);
  options.stream->enqueue([executable, words = std::move(binding.words), run, keep = arguments] {
    runNow(*executable, words, Device::cpu(), run);
  });
}

CompileReport prepare(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &wanted) {
  LaunchOptions options = wanted;
  if (options.target == Target::cuda)
    options.compile.gpu = cudaProperties(options.compile.device).architecture();
  Binding binding = bindArguments(kernel, arguments, options, jit::isGpu(options.target));
  binding.specialization.noOverlap = !anyOverlap(binding.tensors);
  CompileReport report;
  executableFor(kernel, binding.specialization, options.compile, &report);
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
      {"layouts", "NVIDIA GPU (CompileOptions::gpu): Tile IR, every tile with its layout over threads"},
      {"threads", "NVIDIA GPU: what one thread does"},
      {"ptx", "NVIDIA GPU: PTX"},
      {"sass", "NVIDIA GPU: machine code (needs ptxas and a disassembler)"},
  };
  return phases;
}

std::string emit(const Kernel &kernel, const Arguments &arguments, std::string_view phase,
                 const LaunchOptions &options) {
  std::string names;
  bool known = false;
  for (const PhaseInfo &info : compilePhases()) {
    names += (names.empty() ? "" : ", ") + info.name;
    known |= info.name == phase;
  }
  if (!known)
    throw Error("unknown phase '" + std::string(phase) + "': the phases are " + names);
  Binding binding = bindArguments(kernel, arguments, options, jit::isGpu(options.target) || jit::isGpuPhase(phase));
  binding.specialization.noOverlap = !anyOverlap(binding.tensors);
  CompileReport report;
  jit::EmitRequest request{std::string(phase), ""};
  jit::compileKernel(kernel, binding.specialization, options.compile, report, &request);
  return request.text;
}

} // namespace tenon
