// SPDX-License-Identifier: Apache-2.0
#include "tenon/verify/Judge.h"

#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tenon {
namespace {

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string elementText(const Tensor &tensor, int64_t index) {
  if (isFloat(tensor.dtype()))
    return numberText(valuesOf<double>(tensor)[index]);
  int64_t value = valuesOf<int64_t>(tensor)[index];
  return tensor.dtype() == DType::u64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

bool holdsPoison(const std::byte *bits, size_t size, std::optional<std::byte> poison) {
  return poison && std::all_of(bits, bits + size, [&](std::byte b) { return b == *poison; });
}

/// What is wrong with an element. One that still holds what the output was poisoned with was most likely never written;
/// a single byte may hold it by chance.
std::string complaintAt(const Tensor &output, const Tensor &reference, int64_t index, const std::byte *bits,
                        std::optional<std::byte> poison) {
  bool isPoison = holdsPoison(bits, sizeOf(output.dtype()), poison), isByte = sizeOf(output.dtype()) == 1;
  std::string text = "at " + positionText(output, index);
  if (isPoison && !isByte)
    text += " was never written (or got what lies outside the inputs)";
  else
    text += " is " + elementText(output, index) + (isPoison ? " (never written?)" : "");
  return text + " where the reference has " + elementText(reference, index);
}

const std::byte *elementOf(const Tensor &contiguous, int64_t index) {
  return static_cast<const std::byte *>(contiguous.data()) + index * static_cast<int64_t>(sizeOf(contiguous.dtype()));
}

/// Integers are right or wrong. A boolean is compared as the byte it is: any byte but 0 reads as true, and poison must
/// not pass for it.
OutputComparison judgeExact(const Tensor &output, const Tensor &reference, std::optional<std::byte> poison) {
  OutputComparison result;
  forEachElement(output, [&](int64_t i, std::byte *got) {
    if (result.complaint || std::memcmp(got, elementOf(reference, i), sizeOf(output.dtype())) == 0)
      return;
    result.complaint = complaintAt(output, reference, i, got, poison);
    if (output.dtype() == DType::boolean && static_cast<uint8_t>(*got) > 1)
      *result.complaint += " (a boolean must be stored as 0 or 1)";
  });
  return result;
}

} // namespace

OutputComparison judge(const Tensor &output, const Tensor &reference, const Tensor &plain,
                       std::optional<std::byte> poison) {
  DType type = output.dtype();
  if (!isFloat(type))
    return judgeExact(output, reference, poison);

  OutputComparison result;
  double granularity = 0, largest = 0;
  int64_t worst = -1;
  const std::byte *worstBits = nullptr;
  forEachElement(output, [&](int64_t i, std::byte *) {
    double want = readFloat(type, elementOf(reference, i));
    if (std::isfinite(want))
      largest = std::max(largest, std::abs(want));
  });
  // The granularity around 0.3 means nothing for outputs that are all far smaller: there it is taken around the largest.
  double offset = roundTo(type, std::min(0.3, largest));
  forEachElement(output, [&](int64_t i, std::byte *bits) {
    if (result.complaint)
      return;
    double got = readFloat(type, bits), want = readFloat(type, elementOf(reference, i));
    double plainly = readFloat(type, elementOf(plain, i));
    if (!std::isfinite(want) || !std::isfinite(got)) {
      if (std::isnan(want) ? !std::isnan(got) : got != want)
        result.complaint = complaintAt(output, reference, i, bits, poison);
      return;
    }
    double error = std::abs(got - want);
    if (error > result.error || worst < 0) {
      result.error = error;
      worst = i;
      worstBits = bits;
    }
    // An element that overflows when computed plainly says nothing about accuracy.
    if (std::isfinite(plainly))
      result.plainError = std::max(result.plainError, std::abs(plainly - want));
    double shifted = roundTo(type, roundTo(type, want + offset) - offset);
    if (std::isfinite(shifted))
      granularity = std::max(granularity, std::abs(shifted - want));
  });
  if (result.complaint || worst < 0)
    return result;
  // ref + 0.3 - 0.3 - ref samples the type's granularity; with few elements it may happen to be 0, which would ask for
  // the reference's very bits. One unit in the last place of the largest element is what it estimates.
  granularity = std::max(granularity, ulp(type, largest));
  result.allowed = 2 * result.plainError + 2 * granularity;
  if (!(result.error <= result.allowed))
    result.complaint = complaintAt(output, reference, worst, worstBits, poison) + ", an error of " + numberText(result.error) + " with " +
                       numberText(result.allowed) + " allowed";
  return result;
}

std::optional<std::string> firstDifference(const Tensor &a, const Tensor &b) {
  Tensor other = b.clone();
  std::optional<std::string> result;
  forEachElement(a, [&](int64_t i, std::byte *bits) {
    if (!result && std::memcmp(bits, elementOf(other, i), sizeOf(a.dtype())) != 0)
      result = "at " + positionText(a, i) + ": " + elementText(a, i) + ", then " + elementText(other, i);
  });
  return result;
}

} // namespace tenon
