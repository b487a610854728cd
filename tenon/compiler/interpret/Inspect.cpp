// SPDX-License-Identifier: Apache-2.0
//
// tile.assert and tile.print.
#include "tenon/base/TileText.h"
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Program.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

/// Types narrower than f32 are printed as the f32 they equal.
std::string elementText(uint64_t word, Type type, bool isUnsigned) {
  if (type.isInteger(1))
    return word ? "true" : "false";
  if (type.isIntOrIndex())
    return isUnsigned ? std::to_string(word) : std::to_string(signExtend(word, bitWidth(type)));
  return withFormat(type, [&](auto format) -> std::string {
    return numberText(decltype(format)::decode(word));
  });
}

Step preparePrint(tile::PrintOp op, Program &prepared) {
  return [label = op.getLabel().str(), type = op.getValue().getType(), isUnsigned = op.getIsUnsigned(),
          value = prepared.slot(op.getValue())](State &state) {
    if (!state.options.print)
      return true;
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    std::string text = tileText(tensor ? tensor.getShape() : ArrayRef<int64_t>(), [&](int64_t i) {
      return elementText(state.slots[value][i], getElementTypeOrSelf(type), isUnsigned);
    });
    state.options.print(label + " " + tupleText(state.ids) + ": " + text);
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
      llvm::SmallVector<int64_t, 5> element;
      if (auto tensor = llvm::dyn_cast<RankedTensorType>(type)) {
        element.resize(tensor.getRank());
        size_t rest = i;
        for (size_t d = element.size(); d-- > 0; rest /= tensor.getDimSize(d))
          element[d] = static_cast<int64_t>(rest % tensor.getDimSize(d));
      }
      return state.fail(assertionText(message, place, state.ids, element));
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
