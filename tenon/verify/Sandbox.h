// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/verify/Verify.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// The name of a launch argument in a sentence: "argument 2", or "'y'" when the kernel's parameter names are known.
std::string argumentName(size_t argument, const std::vector<std::string> &names);

/// A private copy of a problem's arguments in which every stray write leaves a trace.
///
/// Tensors that share memory share it in the copy, and strides and alignment are kept. Around each stretch of memory
/// lie guard zones; between the elements of a strided tensor the gaps are watched too:
///
///     guard | e0 gap e1 gap e2 ... | guard
///
/// What is not an input (output elements, gaps, guards) is poisoned: NaN where the stretch holds floats and 0xa5 where
/// it holds integers, so that reading it shows; with `alternate` 0x5a, so that an element that nobody wrote shows even
/// where the poison is what is wanted there.
class Sandbox {
public:
  Sandbox(const Problem &problem, bool alternate);

  const Arguments &arguments() const { return arguments_; }

  /// The byte that an output was filled with; none for an input, or an output that is one too.
  std::optional<std::byte> poisonOf(size_t argument) const;

  /// After the run: a sentence on the first byte that changed and is not part of an output, if there is one.
  std::optional<std::string> damage(const std::vector<std::string> &names) const;

private:
  /// One stretch of memory: the tensors whose byte ranges touch, transitively.
  struct Region {
    std::vector<size_t> members;    ///< arguments
    uintptr_t low = 0, high = 0;    ///< in the problem's memory, which keeps what the inputs must still be afterwards
    std::shared_ptr<Buffer> memory; ///< of the copy
    std::byte *begin = nullptr;     ///< where `low` is in the copy
    size_t guard = 0;               ///< bytes watched on each side
    std::byte poison{};
    uint8_t use = 0;                ///< which of read and written, where it is the same for every byte of [low, high)
    std::vector<uint8_t> uses;      ///< per byte, where it is not

    size_t bytes() const { return high - low; }
    const std::byte *original() const { return reinterpret_cast<const std::byte *>(low); }
    uint8_t useOf(size_t byte) const { return uses.empty() ? use : uses[byte]; }
    std::optional<size_t> firstStrayWrite() const; ///< counted from the start of the guard
  };

  void findRegions(const Problem &problem);
  void allocate(const Problem &problem, Region &region, bool alternate) const;
  void findUses(const Problem &problem, Region &region) const;
  Tensor place(const Tensor &original, const Region &region) const;

  std::vector<Region> regions_;
  std::vector<bool> written_, poisoned_; ///< per argument
  Arguments arguments_;
};

} // namespace tenon
