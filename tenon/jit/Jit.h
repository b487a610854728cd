// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/lang/Kernel.h"
#include "tenon/runtime/Stream.h"
#include "tenon/runtime/Tensor.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// From a kernel and its arguments to running code.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

enum class Target : uint8_t {
  cpu,         ///< compiled for this machine's processor
  interpreter, ///< the reference interpreter of Tile IR: slow, and right by definition
  sim,         ///< compiled for an NVIDIA GPU and run by a simulator of one, which watches for races and wrong accesses
  cuda,        ///< compiled for an NVIDIA GPU and run there
};
std::string_view nameOf(Target target);
std::optional<Target> parseTarget(std::string_view name);

/// Values of a kernel's Params by name; those not named take their defaults.
using Params = std::map<std::string, int64_t>;

/// One run-time argument: a tensor for a View, a number for a Scalar or an Index.
class Argument {
public:
  Argument(Tensor tensor) : value_(std::move(tensor)) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Argument(Number number) {
    if constexpr (std::is_integral_v<Number>) {
      if (std::is_signed_v<Number> || static_cast<uint64_t>(number) <= uint64_t(INT64_MAX)) {
        value_ = static_cast<int64_t>(number);
        return;
      }
    }
    value_ = static_cast<double>(number); // an integer past 2^63 is still a number, but no index
  }
  const std::variant<int64_t, double, Tensor> &value() const { return value_; }
  bool isTensor() const { return std::holds_alternative<Tensor>(value_); }
  const Tensor &tensor() const { return std::get<Tensor>(value_); }
  Tensor &tensor() { return std::get<Tensor>(value_); }

private:
  std::variant<int64_t, double, Tensor> value_;
};
using Arguments = std::vector<Argument>;

struct CompileOptions {
  /// "native", or the level to use: "avx512", "avx512-dot" (without AMX), "avx2", "baseline" (x86-64); "amx-emulated" has
  /// the code for AMX run anywhere.
  std::string isa = "native";
  bool useDiskCache = true;
  std::string gpu = "sm_90a"; ///< the architecture of the simulator and of emit(); a device has its own
  int device = 0;             ///< the CUDA device's number; launches take it from their tensors
  int warps = 0;              ///< of a GPU block: 1, 2, 4, ... 32, or 12; 0: chosen from the sizes of the tiles
  int cluster = 0;            ///< GPU blocks that share one program instance: 1, 2, 4, 8, 16; 0: chosen
  int stages = 0;             ///< of asynchronous copies in flight in loops around a dot; 0: chosen, 1: none
  int split = 0;              ///< GPU program instances that share a loop which only adds up; 0 and 1: none do
  bool shareTail = false;     ///< the last program instances, fewer than a GPU's blocks, are made by all blocks
  bool pingPong = false;      ///< two warpgroups of a GPU block take program instances in turns, each alone with its own
  std::string without;        ///< steps of the GPU's code generation to leave out, "order,bulk-stores": docs/nvidia.md
};

/// Throws Error where no kernel could be compiled for the target with these options: an instruction set, an
/// architecture or a device that is not there, a number of warps or blocks that cannot be.
void checkCompileOptions(Target target, const CompileOptions &options);

/// What CompileOptions::without may name.
const std::vector<std::string> &gpuSteps();

struct LaunchOptions {
  Params params;
  Target target = Target::cpu;
  CompileOptions compile;
  int threads = 0;          ///< 0: all visible processors
  Stream *stream = nullptr; ///< null: run now and return when done; otherwise queue on the stream and return at once
};

/// Compiles the kernel for these arguments unless it already is, checks the launch and runs it. For a CUDA device the
/// tensors are there already, or all on the host: then they are copied there, and back when the kernel is done. Throws Error before
/// anything runs when the launch is wrong; an error while running (a failed device_assert) is thrown here, or by the
/// stream's synchronize().
void launch(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options = {});

/// How a specialisation came to be.
struct CompileReport {
  struct Phase {
    std::string name;
    double milliseconds;
  };
  std::vector<Phase> phases; ///< in order; what was skipped is absent
  std::string key;           ///< of the disk cache: a hash of the Tile IR, options, target and build
  bool fromMemory = false;   ///< this process had it already
  bool fromDisk = false;
  /// What a block of a GPU's threads takes.
  struct Gpu {
    int threads = 0; ///< those that only load for the others included
    int cluster = 1, stages = 1;
    int64_t sharedBytes = 0;
    int registers = 0;      ///< of a thread; 0: not known. By NVIDIA's assembler, as the next
    int64_t spillBytes = 0; ///< stored and loaded
  };
  std::optional<Gpu> gpu;
  std::vector<std::string> remarks; ///< "file:line: ..." what the compiler did or declined, and why
  double milliseconds() const;
};
/// Compiles (or loads) without running.
CompileReport prepare(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options = {});

/// The named points where compilation can stop and print, in order.
struct PhaseInfo {
  std::string name, summary;
  bool isGpu = false; ///< of NVIDIA GPUs (CompileOptions::gpu), whatever the target of the options
};
const std::vector<PhaseInfo> &compilePhases();
/// The program as text after a phase. `report` tells how it came to be; of phase "ptx" also what NVIDIA's assembler makes
/// of it, where that is installed.
std::string emit(const Kernel &kernel, const Arguments &arguments, std::string_view phase,
                 const LaunchOptions &options = {}, CompileReport *report = nullptr);

} // namespace tenon
#pragma GCC visibility pop
