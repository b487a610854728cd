// SPDX-License-Identifier: Apache-2.0
//
// Views, and everything that touches memory. Each access first computes the index in every dimension and compares it
// with the view's size; an address is formed only for an element inside the view.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Program.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cstring>
#include <optional>

using namespace mlir;

namespace tenon::interpret {
namespace {

static_assert(std::endian::native == std::endian::little, "words are copied to and from memory by their low bytes");

/// A view at run time, on top of its ABI words.
class View {
public:
  View(const Words &words, Type element, const Options &options)
      : words(words), rank((words.size() - 1) / 2), bytes((bitWidth(element) + 7) / 8),
        isBoolean(element.isInteger(1)), options(options) {}

  bool contains(const int64_t *index) const {
    for (size_t d = 0; d < rank; ++d)
      if (index[d] < 0 || index[d] >= static_cast<int64_t>(words[1 + d]))
        return false;
    return true;
  }

  /// The element at an index inside the view. A boolean is a byte: 0 is false, anything else true.
  uint64_t read(const int64_t *index) const {
    uint64_t word = 0;
    if (options.access)
      options.access(address(index), bytes, /*isWrite=*/false);
    std::memcpy(&word, address(index), bytes);
    return isBoolean ? word != 0 : word;
  }

  void write(const int64_t *index, uint64_t word) const {
    if (options.access)
      options.access(address(index), bytes, /*isWrite=*/true);
    std::memcpy(address(index), &word, bytes);
  }

private:
  char *address(const int64_t *index) const {
    uint64_t element = 0; // unsigned: strides may be negative, and wrap to the right sum
    for (size_t d = 0; d < rank; ++d)
      element += static_cast<uint64_t>(index[d]) * words[1 + rank + d];
    return reinterpret_cast<char *>(words[0] + element * bytes);
  }

  const Words &words;
  size_t rank;
  size_t bytes;
  bool isBoolean;
  const Options &options;
};

/// Visits the elements of a box of `shape` at `offsets` in a view, in row-major order: visit(number, index), the index
/// null where the element lies outside. An offset may be anything, so their sum may not even be representable.
template <class Visit>
void visitWindow(const View &view, ArrayRef<int64_t> shape, ArrayRef<int64_t> offsets, size_t count, Visit visit) {
  llvm::SmallVector<int64_t, 5> place(shape.size(), 0), index(shape.size());
  for (size_t i = 0; i < count; ++i) {
    bool isInside = true;
    for (size_t d = 0; d < shape.size(); ++d)
      isInside &= !__builtin_add_overflow(offsets[d], place[d], &index[d]);
    visit(i, isInside && view.contains(index.data()) ? index.data() : nullptr);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++place[d] < shape[d])
        break;
      place[d] = 0;
    }
  }
}

llvm::SmallVector<int64_t, 5> scalars(const State &state, const Slots &slots) {
  llvm::SmallVector<int64_t, 5> values;
  for (size_t slot : slots)
    values.push_back(state.scalar(slot));
  return values;
}

Step prepareLoad(tile::LoadOp op, Program &program) {
  llvm::SmallVector<int64_t, 5> shape(op.getType().getShape());
  std::optional<size_t> padding;
  if (op.getPadding())
    padding = program.slot(op.getPadding());
  return [=, element = op.getType().getElementType(), viewSlot = program.slot(op.getView()),
          offsets = program.slots(op.getOffsets()), result = program.slot(op.getResult())](State &state) {
    View view(state.slots[viewSlot], element, state.options);
    Words &words = state.slots[result];
    uint64_t pad = padding ? state.slots[*padding][0] : 0;
    visitWindow(view, shape, scalars(state, offsets), words.size(),
                [&](size_t i, const int64_t *index) { words[i] = index ? view.read(index) : pad; });
    return true;
  };
}

Step prepareStore(tile::StoreOp op, Program &program) {
  llvm::SmallVector<int64_t, 5> shape(op.getValue().getType().getShape());
  return [=, element = op.getValue().getType().getElementType(), viewSlot = program.slot(op.getView()),
          offsets = program.slots(op.getOffsets()), value = program.slot(op.getValue())](State &state) {
    View view(state.slots[viewSlot], element, state.options);
    const Words &words = state.slots[value];
    visitWindow(view, shape, scalars(state, offsets), words.size(), [&](size_t i, const int64_t *index) {
      if (index)
        view.write(index, words[i]);
    });
    return true;
  };
}

/// What gather, scatter and the atomics have in common: elements named by one tile of indices per dimension.
struct Indexed {
  size_t view;
  Slots indices;
  llvm::SmallVector<unsigned, 5> widths;
  std::optional<size_t> mask;
  Type element;

  template <class Op> Indexed(Op op, Type element, Program &program) : element(element) {
    view = program.slot(op.getView());
    indices = program.slots(op.getIndices());
    for (Value index : op.getIndices())
      widths.push_back(bitWidth(llvm::cast<RankedTensorType>(index.getType()).getElementType()));
    if (op.getMask())
      mask = program.slot(op.getMask());
  }

  /// Calls visit(number, view, index) for each element, the index null where it is outside the view or masked off.
  template <class Visit> void forEach(const State &state, size_t count, Visit visit) const {
    View window(state.slots[view], element, state.options);
    llvm::SmallVector<int64_t, 5> index(indices.size());
    for (size_t i = 0; i < count; ++i) {
      for (size_t d = 0; d < indices.size(); ++d)
        index[d] = signExtend(state.slots[indices[d]][i], widths[d]);
      bool isWanted = (!mask || state.slots[*mask][i]) && window.contains(index.data());
      visit(i, window, isWanted ? index.data() : nullptr);
    }
  }
};

Step prepareGather(tile::GatherOp op, Program &program) {
  std::optional<size_t> padding;
  if (op.getPadding())
    padding = program.slot(op.getPadding());
  return [=, where = Indexed(op, op.getType().getElementType(), program),
          result = program.slot(op.getResult())](State &state) {
    Words &words = state.slots[result];
    uint64_t pad = padding ? state.slots[*padding][0] : 0;
    where.forEach(state, words.size(), [&](size_t i, const View &view, const int64_t *index) {
      words[i] = index ? view.read(index) : pad;
    });
    return true;
  };
}

Step prepareScatter(tile::ScatterOp op, Program &program) {
  return [where = Indexed(op, op.getValue().getType().getElementType(), program),
          value = program.slot(op.getValue())](State &state) {
    const Words &words = state.slots[value];
    where.forEach(state, words.size(), [&](size_t i, const View &view, const int64_t *index) {
      if (index)
        view.write(index, words[i]);
    });
    return true;
  };
}

/// Updates are plain reads and writes: instances run one after the other.
template <class Op, class Update> Step prepareAtomic(Op op, Type element, Program &program, Update update) {
  return [=, where = Indexed(op, element, program), result = program.slot(op.getOld())](State &state) {
    Words &old = state.slots[result];
    where.forEach(state, old.size(), [&](size_t i, const View &view, const int64_t *index) {
      old[i] = index ? view.read(index) : 0;
      if (index)
        view.write(index, update(state, i, old[i]));
    });
    return true;
  };
}

using Combine = uint64_t (*)(uint64_t, uint64_t);

Combine floatUpdate(tile::AtomicKind kind, Type element) {
  return withFormat(element, [kind](auto format) -> Combine {
    using Format = decltype(format);
    switch (kind) {
    case tile::AtomicKind::add:
      return [](uint64_t a, uint64_t b) { return Format::encode(Format::decode(a) + Format::decode(b)); };
    case tile::AtomicKind::max:
      return [](uint64_t a, uint64_t b) { return Format::encode(maximum(Format::decode(a), Format::decode(b))); };
    case tile::AtomicKind::min:
      return [](uint64_t a, uint64_t b) { return Format::encode(minimum(Format::decode(a), Format::decode(b))); };
    case tile::AtomicKind::exchange:
      return [](uint64_t, uint64_t b) { return b; };
    }
    return nullptr;
  });
}

uint64_t integerUpdate(tile::AtomicKind kind, unsigned width, bool isUnsigned, uint64_t a, uint64_t b) {
  bool isLess = isUnsigned ? a < b : signExtend(a, width) < signExtend(b, width);
  switch (kind) {
  case tile::AtomicKind::add:
    return lowBits(a + b, width);
  case tile::AtomicKind::max:
    return isLess ? b : a;
  case tile::AtomicKind::min:
    return isLess ? a : b;
  case tile::AtomicKind::exchange:
    return b;
  }
  return a;
}

Step prepareAtomicRMW(tile::AtomicRMWOp op, Program &program) {
  Type element = op.getValue().getType().getElementType();
  size_t value = program.slot(op.getValue());
  if (Combine combine = floatUpdate(op.getKind(), element))
    return prepareAtomic(op, element, program, [=](const State &state, size_t i, uint64_t old) {
      return combine(old, state.slots[value][i]);
    });
  return prepareAtomic(op, element, program,
                       [=, kind = op.getKind(), width = bitWidth(element),
                        isUnsigned = op.getIsUnsigned()](const State &state, size_t i, uint64_t old) {
                         return integerUpdate(kind, width, isUnsigned, old, state.slots[value][i]);
                       });
}

Step prepareAtomicCAS(tile::AtomicCASOp op, Program &program) {
  return prepareAtomic(op, op.getExpected().getType().getElementType(), program,
                       [expected = program.slot(op.getExpected()),
                        desired = program.slot(op.getDesired())](const State &state, size_t i, uint64_t old) {
                         return old == state.slots[expected][i] ? state.slots[desired][i] : old;
                       });
}

Step prepareWorkspace(tile::WorkspaceOp op, Program &program) {
  size_t number = 0;
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
    number += llvm::isa<tile::WorkspaceOp>(before);
  return [number, result = program.slot(op.getView())](State &state) {
    state.slots[result] = state.workspaces[number];
    return true;
  };
}

} // namespace

Step prepareMemory(Operation *op, Program &program) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](tile::LoadOp load) { return prepareLoad(load, program); })
      .Case([&](tile::StoreOp store) { return prepareStore(store, program); })
      .Case([&](tile::GatherOp gather) { return prepareGather(gather, program); })
      .Case([&](tile::ScatterOp scatter) { return prepareScatter(scatter, program); })
      .Case([&](tile::AtomicRMWOp atomic) { return prepareAtomicRMW(atomic, program); })
      .Case([&](tile::AtomicCASOp atomic) { return prepareAtomicCAS(atomic, program); })
      .Case([&](tile::WorkspaceOp workspace) { return prepareWorkspace(workspace, program); })
      .Case([&](tile::SizeOp size) -> Step {
        return [word = 1 + size.getDim(), view = program.slot(size.getView()),
                result = program.slot(size.getResult())](State &state) {
          state.slots[result][0] = state.slots[view][word];
          return true;
        };
      })
      .Default([](Operation *) { return Step(); });
}

} // namespace tenon::interpret
