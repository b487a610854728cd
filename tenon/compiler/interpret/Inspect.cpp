// SPDX-License-Identifier: Apache-2.0
//
// tile.assert and tile.print.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Program.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <charconv>

using namespace mlir;

namespace tenon::interpret {
namespace {

/// Past this many elements a printed tile ends in "...".
constexpr size_t maxPrinted = 64;

std::string tuple(ArrayRef<int64_t> values) {
  std::string text = "(";
  for (int64_t value : values)
    text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + ")";
}

std::string program(const State &state) { return tuple({state.ids[0], state.ids[1], state.ids[2]}); }

/// The shortest text that reads back as the same value; types narrower than f32 as the f32 they equal.
std::string elementText(uint64_t word, Type type, bool isUnsigned) {
  if (type.isInteger(1))
    return word ? "true" : "false";
  if (type.isIntOrIndex())
    return isUnsigned ? std::to_string(word) : std::to_string(signExtend(word, bitWidth(type)));
  return withFormat(type, [&](auto format) -> std::string {
    auto value = decltype(format)::decode(word);
    if (std::isnan(value)) // its sign means nothing
      return "nan";
    char buffer[64];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  });
}

/// Appends dimension `dim` and those below it, starting at element `next`; false when the rest is left out.
bool appendTile(std::string &text, const Words &words, RankedTensorType type, bool isUnsigned, int64_t dim,
                size_t &next) {
  if (dim == type.getRank()) {
    bool fits = next < maxPrinted;
    text += fits ? elementText(words[next++], type.getElementType(), isUnsigned) : "...";
    return fits;
  }
  if (next >= maxPrinted) { // no bracket without an element in it
    text += "...";
    return false;
  }
  text += "[";
  bool isComplete = true;
  for (int64_t i = 0; i < type.getDimSize(dim) && isComplete; ++i) {
    text += i == 0 ? "" : ", ";
    isComplete = appendTile(text, words, type, isUnsigned, dim + 1, next);
  }
  text += "]";
  return isComplete;
}

Step preparePrint(tile::PrintOp op, Program &prepared) {
  return [label = op.getLabel().str(), type = op.getValue().getType(), isUnsigned = op.getIsUnsigned(),
          value = prepared.slot(op.getValue())](State &state) {
    if (!state.options.print)
      return true;
    std::string text = label + " " + program(state) + ": ";
    size_t next = 0;
    if (auto tensor = llvm::dyn_cast<RankedTensorType>(type))
      appendTile(text, state.slots[value], tensor, isUnsigned, 0, next);
    else
      text += elementText(state.slots[value][0], type, isUnsigned);
    state.options.print(text);
    return true;
  };
}

Step prepareAssert(tile::AssertOp op, Program &prepared) {
  return [message = op.getMessage().str(), place = locationText(op.getLoc()), type = op.getCondition().getType(),
          condition = prepared.slot(op.getCondition())](State &state) {
    const Words &words = state.slots[condition];
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i])
        continue;
      std::string text = "assertion failed: " + message + " (" + place + ", program " + program(state);
      if (auto tensor = llvm::dyn_cast<RankedTensorType>(type)) {
        llvm::SmallVector<int64_t, 5> element(tensor.getRank());
        size_t rest = i;
        for (size_t d = element.size(); d-- > 0; rest /= tensor.getDimSize(d))
          element[d] = static_cast<int64_t>(rest % tensor.getDimSize(d));
        text += ", element " + tuple(element);
      }
      return state.fail(text + ")");
    }
    return true;
  };
}

} // namespace

Step prepareInspect(Operation *op, Program &prepared) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](tile::PrintOp print) { return preparePrint(print, prepared); })
      .Case([&](tile::AssertOp check) { return prepareAssert(check, prepared); })
      .Default([](Operation *) { return Step(); });
}

} // namespace tenon::interpret
