// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/Binding.h"

#include "tenon/base/Words.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::jit {
namespace {

//===--- What is specialised on of one argument -------------------------------------------------------------------===//

/// The largest power of two, up to 16, that a number is a multiple of, as its logarithm. Differences that code does not
/// depend on would compile it again: only whether 16 bytes fit is asked of addresses and strides.
uint64_t divisorBits(int64_t value) { return std::countr_zero(static_cast<uint64_t>(value) | 16); }
constexpr unsigned bitsPerDivisor = 3;

/// Whether the tensor memory accelerator could move boxes of this view, if address and strides are multiples of 16
/// bytes: it counts elements in 32 bits with a sign, strides in 40 without, and knows no empty tensors.
bool canBeMapped(const Tensor &tensor) {
  std::span<const int64_t> sizes = tensor.sizes(), strides = tensor.strides();
  int64_t mostOfStride = (int64_t(1) << 40) / static_cast<int64_t>(sizeOf(tensor.dtype()));
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] < 1 || sizes[d] > INT32_MAX || (sizes[d] > 1 && (strides[d] < 1 || strides[d] >= mostOfStride)))
      return false;
  return true;
}

/// An ArgumentSpec of a view as one word of the key.
struct ViewFacts {
  uint64_t dtype : 8;
  uint64_t rank : 4;
  uint64_t unitStride : 4; ///< the dimension plus one; 0: none
  uint64_t distinct : 1;
  uint64_t divisors : 33; ///< of the address, the sizes and the strides; 0 where not asked
  uint64_t unused : 14;
};
static_assert(sizeof(ViewFacts) == sizeof(uint64_t) && bitsPerDivisor * (1 + 2 * Tensor::maxRank) <= 33);

ViewFacts factsOf(const Tensor &tensor, bool forGpu) {
  ViewFacts facts{};
  facts.dtype = static_cast<uint64_t>(tensor.dtype());
  facts.rank = static_cast<uint64_t>(tensor.rank());
  std::span<const int64_t> strides = tensor.strides();
  for (size_t d = 0; d < strides.size(); ++d) // the last one
    if (strides[d] == 1)
      facts.unitStride = d + 1;
  facts.distinct = tensor.hasDistinctElements();
  if (!forGpu)
    return facts;
  // Only an address that is a multiple of 16 is a reason to try the tensor memory accelerator.
  uint64_t divisors = divisorBits(reinterpret_cast<int64_t>(tensor.data()) | (canBeMapped(tensor) ? 0 : 8));
  unsigned at = bitsPerDivisor;
  for (int64_t size : tensor.sizes()) {
    divisors |= divisorBits(size) << at;
    at += bitsPerDivisor;
  }
  for (int64_t stride : strides) {
    divisors |= divisorBits(stride) << at;
    at += bitsPerDivisor;
  }
  facts.divisors = divisors;
  return facts;
}

/// The other way round.
ArgumentSpec specOf(ParameterKind kind, uint64_t fact, bool forGpu) {
  ArgumentSpec spec;
  spec.kind = kind;
  if (kind == ParameterKind::param) {
    spec.value = static_cast<int64_t>(fact);
  } else if (kind == ParameterKind::index && forGpu) {
    spec.divisible = {int64_t(1) << fact};
  } else if (kind == ParameterKind::view) {
    auto facts = std::bit_cast<ViewFacts>(fact);
    spec.dtype = static_cast<DType>(facts.dtype);
    spec.rank = static_cast<int>(facts.rank);
    spec.unitStride = static_cast<int>(facts.unitStride) - 1;
    spec.distinct = facts.distinct;
    for (int i = 0; forGpu && i < 1 + 2 * spec.rank; ++i)
      spec.divisible.push_back(int64_t(1) << (facts.divisors >> (bitsPerDivisor * i) & 7));
  }
  return spec;
}

//===--- Refusals -------------------------------------------------------------------------------------------------===//

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

[[noreturn, gnu::cold]] void refuseParams(const Kernel &kernel, const Params &params) {
  std::string names;
  for (const KernelParameter &parameter : kernel.parameters())
    if (parameter.kind == ParameterKind::param)
      names += (names.empty() ? "" : ", ") + parameter.name;
  for (const auto &[name, value] : params) {
    bool known = false;
    for (const KernelParameter &parameter : kernel.parameters())
      known |= parameter.kind == ParameterKind::param && parameter.name == name;
    if (!known)
      throw Error(kernel.where(), "unknown parameter '" + name + "' of kernel " + kernel.name() + ": it has " +
                                      (names.empty() ? "none" : names));
  }
  throw InternalError("a known parameter of kernel " + kernel.name() + " was not found");
}

[[noreturn, gnu::cold]] void refuseMissing(const Kernel &kernel, const KernelParameter &parameter) {
  throw Error(kernel.where(),
              "parameter '" + parameter.name + "' of kernel " + kernel.name() + " has no default: set it in params");
}

[[noreturn, gnu::cold]] void refuseCount(const Kernel &kernel, size_t wanted, size_t given) {
  std::string names;
  for (const KernelParameter &parameter : kernel.parameters())
    if (parameter.kind != ParameterKind::param)
      names += (names.empty() ? ": " : ", ") + parameter.name;
  throw Error(kernel.where(), "kernel " + describe(kernel) + " takes " +
                                  counted(static_cast<int64_t>(wanted), "run-time argument") + ", not " +
                                  std::to_string(given) + names);
}

[[noreturn, gnu::cold]] void refuseKind(const Kernel &kernel, const KernelParameter &parameter) {
  throw Error(kernel.where(),
              "argument '" + parameter.name + "' of kernel " + kernel.name() + " must be " + kindName(parameter.kind));
}

[[noreturn, gnu::cold]] void refuseRank(const Kernel &kernel, const KernelParameter &parameter) {
  throw Error(kernel.where(), "argument '" + parameter.name + "' of kernel " + kernel.name() +
                                  " has no dimensions: a view has 1 to 5");
}

} // namespace

//===--- Signature and binding ------------------------------------------------------------------------------------===//

Signature::Signature(const Kernel &kernel) {
  const std::vector<KernelParameter> &parameters = kernel.parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].kind == ParameterKind::param)
      params.push_back({&parameters[i], i});
    else
      ++arguments;
  std::sort(params.begin(), params.end(),
            [](const Param &a, const Param &b) { return a.parameter->name < b.parameter->name; });
}

Binding::Binding(const Kernel &kernel, const Signature &signature, const Arguments &arguments,
                 const LaunchOptions &options, int device, bool forGpu)
    : kernel_(kernel), target_(options.target), forGpu_(forGpu) {
  addOptions(options.compile, device);
  const std::vector<KernelParameter> &parameters = kernel.parameters();
  size_t first = key_.size();
  key_.resize_for_overwrite(first + parameters.size());
  uint64_t *facts = key_.data() + first;
  bindParams(signature, options, facts);
  if (arguments.size() != signature.arguments) [[unlikely]]
    refuseCount(kernel, signature.arguments, arguments.size());
  words.resize_for_overwrite((1 + 2 * Tensor::maxRank) * arguments.size());
  int64_t *word = words.data();
  size_t next = 0;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].kind != ParameterKind::param)
      facts[i] = bindArgument(parameters[i], arguments[next++], word);
  words.truncate(static_cast<size_t>(word - words.data()));

  for (size_t i = 0; i < tensors.size() && noOverlap_; ++i)
    for (size_t j = 0; j < i && tensors[i]; ++j)
      if (tensors[j] && tensors[i]->overlaps(*tensors[j])) {
        noOverlap_ = false;
        break;
      }
  key_[0] |= uint64_t(noOverlap_) << 8;
  if (!noOverlap_ && tellsOverlaps())
    addOverlaps(first);
}

/// A word for each argument: a bit for each one that overlaps it, and in the upper half which one it is again, plus 1.
void Binding::addOverlaps(size_t at) {
  auto isSame = [](const Tensor &a, const Tensor &b) {
    return a.data() == b.data() && a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) &&
           std::ranges::equal(a.strides(), b.strides());
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint64_t word = 0;
    for (size_t j = tensors.size(); j-- > 0 && tensors[i];) {
      if (i == j || !tensors[j] || !tensors[i]->overlaps(*tensors[j]))
        continue;
      word |= uint64_t(1) << j;
      if (j < i && isSame(*tensors[i], *tensors[j])) // the first of them in the end
        word = (word & 0xffffffff) | uint64_t(j + 1) << 32;
    }
    key_.insert(key_.begin() + at + i, word);
  }
}

void Binding::addOptions(const CompileOptions &options, int device) {
  // A new option does not compile here: it belongs into the key, or has no influence on the code. What GPU code depends
  // on is in gpuOptionsText() too, for the disk cache.
  const auto &[isa, useDiskCache, gpu, unused, warps, cluster, stages, split, shareTail, pingPong, without] = options;
  key_.push_back(static_cast<uint64_t>(target_));
  addText(isa);
  if (!forGpu_)
    return;
  auto pair = [](int low, int high) { return uint64_t(uint32_t(low)) | uint64_t(uint32_t(high)) << 32; };
  key_.push_back(pair(device, warps));
  key_.push_back(pair(cluster, stages));
  key_.push_back(pair(split, 2 * pingPong + shareTail));
  addText(without);
  if (target_ != Target::cuda) // a device's architecture is its own
    addText(gpu);
}

void Binding::addText(std::string_view text) {
  size_t at = key_.size(), words = (text.size() + 7) / 8;
  key_.resize(at + 1 + words); // zeros behind the end of the text
  key_[at] = text.size();
  std::memcpy(key_.data() + at + 1, text.data(), text.size());
}

void Binding::bindParams(const Signature &signature, const LaunchOptions &options, uint64_t *facts) {
  // Both are sorted by name: one walk through both finds all, or stops at a name that the kernel does not have.
  auto given = options.params.begin(), end = options.params.end();
  const KernelParameter *missing = nullptr;
  for (auto [parameter, position] : signature.params) {
    if (given != end && given->first == parameter->name)
      facts[position] = static_cast<uint64_t>((given++)->second);
    else if (parameter->defaultValue)
      facts[position] = static_cast<uint64_t>(*parameter->defaultValue);
    else
      missing = parameter;
  }
  if (given != end) [[unlikely]]
    refuseParams(kernel_, options.params);
  if (missing) [[unlikely]]
    refuseMissing(kernel_, *missing);
}

uint64_t Binding::bindArgument(const KernelParameter &parameter, const Argument &argument, int64_t *&word) {
  const auto &value = argument.value();
  if (parameter.kind == ParameterKind::view) {
    const auto *tensor = std::get_if<Tensor>(&value);
    if (!tensor) [[unlikely]]
      refuseKind(kernel_, parameter);
    if (tensor->rank() < 1) [[unlikely]]
      refuseRank(kernel_, parameter);
    tensors.push_back(tensor);
    *word++ = reinterpret_cast<int64_t>(tensor->data());
    for (int64_t size : tensor->sizes())
      *word++ = size;
    for (int64_t stride : tensor->strides())
      *word++ = stride;
    return std::bit_cast<uint64_t>(factsOf(*tensor, forGpu_));
  }
  tensors.push_back(nullptr);
  const auto *integer = std::get_if<int64_t>(&value);
  if (parameter.kind == ParameterKind::index) {
    if (!integer) [[unlikely]]
      refuseKind(kernel_, parameter);
    *word++ = *integer;
    return forGpu_ ? divisorBits(*integer) : 0;
  }
  const auto *real = std::get_if<double>(&value);
  if (!integer && !real) [[unlikely]]
    refuseKind(kernel_, parameter);
  *word++ = std::bit_cast<int64_t>(real ? *real : static_cast<double>(*integer));
  return 0;
}

Specialization Binding::specialization() const {
  Specialization result;
  result.target = target_;
  result.noOverlap = noOverlap_;
  const std::vector<KernelParameter> &parameters = kernel_.parameters();
  const uint64_t *facts = key_.end() - parameters.size();
  for (size_t i = 0; i < parameters.size(); ++i)
    result.arguments.push_back(specOf(parameters[i].kind, facts[i], forGpu_));
  if (noOverlap_ || !tellsOverlaps())
    return result;
  const uint64_t *word = facts - tensors.size();
  for (size_t i = 0; i < tensors.size(); ++i, ++word) {
    Overlaps &overlaps = result.overlaps.emplace_back();
    overlaps.sameAs = static_cast<int>(*word >> 32) - 1;
    for (int other = 0; other < 32; ++other)
      if (*word >> other & 1)
        overlaps.with.push_back(other);
  }
  return result;
}

} // namespace tenon::jit
