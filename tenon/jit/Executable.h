// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: something that a launch can run, whatever the target.
#pragma once

#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/runtime/Device.h"
#include "tenon/runtime/Stream.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tenon::jit {

class Executable {
public:
  explicit Executable(lower::KernelInfo kernelInfo) : info(std::move(kernelInfo)) {}
  virtual ~Executable() = default;
  struct Plan {
    int64_t grid[3] = {1, 1, 1};
    std::string refusal; ///< why the launch must not happen, or empty
    llvm::SmallVector<llvm::SmallVector<int64_t, 5>, 2> workspaces; ///< sizes
  };
  virtual Plan plan(std::span<const int64_t> words) const = 0;

  struct RunOptions {
    int threads = 0;          ///< of the CPU
    Stream *stream = nullptr; ///< of a CUDA device: where to queue; never null there
    bool wait = false;        ///< of a CUDA device: return when it is done
    uint64_t launch = 0;      ///< its number in a profile; 0: nobody looks
  };
  /// `words` include the workspaces'. No extent of the grid is zero.
  virtual void run(const Plan &plan, std::span<const int64_t> words, const RunOptions &options) const = 0;

  const lower::KernelInfo info;
};

std::shared_ptr<Executable> makeCpuExecutable(lower::KernelInfo info, std::span<const char> code);
std::shared_ptr<Executable> makeInterpretedExecutable(std::unique_ptr<mlir::MLIRContext> context,
                                                      mlir::OwningOpRef<mlir::ModuleOp> module);
/// `plan` is the host's part (cpu::lowerPlan), `code` the thread function compiled for this processor.
std::shared_ptr<Executable> makeSimExecutable(lower::KernelInfo info, std::span<const char> plan,
                                              std::span<const char> code);
/// `cubin` is machine code of the device.
std::shared_ptr<Executable> makeCudaExecutable(lower::KernelInfo info, std::span<const char> plan,
                                               std::span<const char> cubin, int device);

/// Where launches on a CUDA device go that name no stream.
Stream &defaultStream(int device);

/// What the plan function of compiled code wrote, as a Plan.
Executable::Plan readPlan(void (*function)(const int64_t *, int64_t *), const lower::KernelInfo &info,
                          std::span<const int64_t> words);

/// device_assert and device_print of one launch: prints at once, keeps the first failure. Called from several threads.
class Reports {
public:
  void fail(const std::string &message);
  void print(const std::string &text);
  /// Throws the failure, if there is one.
  void raise() const;

private:
  std::mutex mutex_;
  std::string failure_;
};

/// The memory that a GPU kernel's asserts and prints write to (compiler/target/nvidia/threads/Indexed.cpp): nine status
/// words; a count, a capacity and records of eight words for prints.
class DeviceReports {
public:
  explicit DeviceReports(const lower::KernelInfo &info);
  bool needed() const { return !info_.gpu.asserts.empty() || !info_.gpu.prints.empty(); }
  /// As it is before a launch.
  std::vector<int64_t> initialWords() const;
  static constexpr size_t statusWords = 16;
  /// Prints what was printed and throws what failed.
  void read(std::span<const int64_t> words) const;

private:
  const lower::KernelInfo &info_;
};

} // namespace tenon::jit
