// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/cuda/DriverApi.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tenon::cuda {

class Gpu;

struct AssembleOptions {
  int optimization = 4;  ///< 0 to 4
  bool lineInfo = false; ///< for profilers
  bool verbose = false;  ///< the log tells registers and spills
  int maxRegisters = 0;  ///< 0: the assembler decides
};

/// The driver's assembler: PTX to a cubin for this device, to be kept. An Error has the assembler's words.
struct Cubin {
  std::vector<std::byte> bytes;
  std::string log;
};
Cubin assemble(Gpu &gpu, const std::string &ptx, const AssembleOptions &options = {});

/// Has the driver start its assembler, on a thread of its own: the first of these in a process does, for what the caller
/// does meanwhile to overlap with it. What goes wrong there is left for assemble() to meet.
class AssemblerStart {
public:
  explicit AssemblerStart(int device);
  ~AssemblerStart(); ///< waits
  AssemblerStart(const AssemblerStart &) = delete;
  AssemblerStart &operator=(const AssemblerStart &) = delete;

private:
  std::thread thread_;
};

/// Code on a device. Unloaded when the last function of it is gone, after waiting for queued work.
class Module {
public:
  static std::shared_ptr<Module> fromPtx(Gpu &gpu, const std::string &ptx, const AssembleOptions &options = {});
  static std::shared_ptr<Module> fromCubin(Gpu &gpu, std::span<const std::byte> cubin);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  Gpu &gpu() const { return gpu_; }
  ModuleHandle handle() const { return handle_; }
  /// What the assembler said, if it had anything to do.
  const std::string &log() const { return log_; }

private:
  Module(Gpu &gpu, ModuleHandle handle, std::string log) : gpu_(gpu), handle_(handle), log_(std::move(log)) {}
  static std::shared_ptr<Module> load(Gpu &gpu, const void *image, const AssembleOptions *options, const char *doing);

  Gpu &gpu_;
  ModuleHandle handle_;
  std::string log_;
};

/// A kernel, ready to launch. Cheap to copy.
class Function {
public:
  struct Attributes {
    int registers = 0;         ///< of a thread
    int localBytes = 0;        ///< of a thread: spilt registers and arrays
    int staticSharedBytes = 0; ///< of a block
    int maxThreads = 0;        ///< of a block
  };

  /// `sharedBytes` of dynamic shared memory at most, `clusterBlocks` blocks a cluster at most: what is more than every
  /// device has (48 KB, 8 blocks) is asked for here. `parameters`: how many the kernel will be given, so that launches
  /// can be checked; 0: they are not. Throws Error when the name is not there or the device has less.
  Function(std::shared_ptr<Module> module, const std::string &name, uint32_t sharedBytes = 0,
           uint32_t clusterBlocks = 1, size_t parameters = 0);

  Gpu &gpu() const { return module_->gpu(); }
  FunctionHandle handle() const { return handle_; }
  /// Lives for ever.
  const char *name() const { return name_; }
  const Attributes &attributes() const { return attributes_; }
  /// Of all parameters together, or -1 where nobody counted them or the driver does not tell.
  int64_t parameterBytes() const { return parameterBytes_; }
  /// How many blocks of this kernel an idle device runs at the same time: a multiple of the cluster, and not 0. Asks
  /// the driver: not for every launch.
  int64_t blocksAtOnce(uint32_t blockThreads, uint32_t sharedBytes, uint32_t clusterBlocks) const;

private:
  void measureParameters(size_t count);
  void allowSharedBytes(uint32_t bytes);
  void allowCluster(uint32_t blocks);

  std::shared_ptr<Module> module_;
  FunctionHandle handle_ = nullptr;
  const char *name_;
  Attributes attributes_;
  int64_t parameterBytes_ = -1;
};

/// How many clusters of so many blocks (2, 4, 8) run at the same time where each block has a multiprocessor to itself:
/// all blocks of one must be near each other, and how many find such a place differs from card to card. Asks the driver
/// once; 0 where there are no clusters.
int clustersAtOnce(Gpu &gpu, int blocks);

} // namespace tenon::cuda
