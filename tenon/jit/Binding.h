// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: the arguments of a launch in the forms that compiled code and the cache of it take. Part of every
// launch, and therefore without allocations (up to the sizes below) and without text.
#pragma once

#include "tenon/jit/Compiler.h"

#include "llvm/ADT/SmallVector.h"

#include <span>
#include <vector>

namespace tenon::jit {

/// What all launches of a kernel have in common. Refers to the kernel's parameters.
struct Signature {
  explicit Signature(const Kernel &kernel);

  struct Param {
    const KernelParameter *parameter;
    size_t position; ///< among the kernel's parameters
  };
  std::vector<Param> params; ///< by name, as in a map of Params
  size_t arguments = 0;      ///< of a launch
};

/// The arguments of one launch. Refers to them.
///
/// The key is everything that the generated code depends on besides the kernel itself:
///
///     target, overlap, length of isa | isa ... | for GPUs: device, warps | cluster, stages | split | length of gpu
///     | gpu ... | for GPUs, where tensors overlap: one word an argument: which ones
///     | one word a parameter of the kernel: a Param's value, or what is specialised on of an argument
///
/// A Specialization is made from the key alone, so that two launches of the same key cannot need different code.
class Binding {
public:
  /// Throws Error when these are no arguments of the kernel. `forGpu`: with what a GPU's code may rely on; `device` is
  /// the one that code is for.
  Binding(const Kernel &kernel, const Signature &signature, const Arguments &arguments, const LaunchOptions &options,
          int device, bool forGpu);
  Binding(const Binding &) = delete;

  std::span<const uint64_t> key() const { return key_; }
  Specialization specialization() const;
  /// No two tensors share bytes. Which of them are written is not known before tracing, so the fact is about all.
  bool noOverlap() const { return noOverlap_; }

  llvm::SmallVector<int64_t, 256> words;          ///< that compiled code reads
  llvm::SmallVector<const Tensor *, 32> tensors; ///< per function argument; null for numbers

private:
  void addOptions(const CompileOptions &options, int device);
  void addText(std::string_view text);
  void bindParams(const Signature &signature, const LaunchOptions &options, uint64_t *facts);
  uint64_t bindArgument(const KernelParameter &parameter, const Argument &argument, int64_t *&word);
  /// For GPUs: which of the tensors overlap, where some do.
  bool tellsOverlaps() const { return forGpu_ && tensors.size() <= 32; }
  void addOverlaps(size_t at); ///< in the key

  const Kernel &kernel_;
  Target target_;
  bool forGpu_, noOverlap_ = true;
  llvm::SmallVector<uint64_t, 48> key_;
};

} // namespace tenon::jit
