// SPDX-License-Identifier: Apache-2.0
//
// Which roots share a loop nest. Roots arrive in program order and join the nest in the making when they have its
// iteration space and when doing everything for one vector of elements, then for the next, gives the same result as doing
// one root after the other:
//   - a root may use what another one of the nest computes only at the same element, and no result of a reduction;
//   - it may not read memory that the nest writes;
//   - what it overwrites (a view, or a loop-carried buffer in place) the nest may have read only at the same element.
#include "tenon/compiler/target/cpu/LoopEmitter.h"
#include "tenon/compiler/target/cpu/Nest.h"

using namespace mlir;

namespace tenon::cpu {

/// Whether the root computes its value, which then has no buffer to read from yet; otherwise it copies one that has.
bool LoopEmitter::computes(const NestRoot &root) {
  Operation *op = root.op ? nullptr : root.value.getDefiningOp();
  if (!op || !isPulled(op))
    return false;
  auto own = buffers_.find(root.value);
  return own == buffers_.end() || own->second.pointer == root.buffer.pointer;
}

/// Calls `visit` with everything the root's elements come from: values with a buffer, or the op that reads them from a
/// view; and whether the element wanted is the one at the root's own place.
void LoopEmitter::forEachSource(const NestRoot &root, llvm::function_ref<void(Value, Operation *, bool)> visit) {
  SmallVector<std::pair<Value, bool>> from;
  if (root.op) {
    for (Value operand : root.op->getOperands())
      from.push_back({operand, true});
  } else if (computes(root)) {
    Operation *op = root.value.getDefiningOp();
    if (viewReadBy(op))
      visit(root.value, op, true);
    for (Value operand : op->getOperands())
      from.push_back({operand, isElementwise(op)});
  } else {
    from.push_back({root.value, true});
  }
  walkPulled(std::move(from), [&](Value tile, bool inPlace) {
    bool hasBuffer = buffer(tile) != nullptr;
    Operation *op = tile.getDefiningOp();
    if (hasBuffer)
      visit(tile, nullptr, inPlace);
    else if (op && viewReadBy(op))
      visit(tile, op, inPlace);
    return !hasBuffer;
  });
}

bool LoopEmitter::canJoin(ArrayRef<int64_t> shape, int reduceDim, bool scalarOnly, const NestRoot &root) {
  const NestGroup &group = *pending_;
  if (ArrayRef<int64_t>(group.shape) != shape || group.scalarOnly || scalarOnly ||
      (group.reduceDim >= 0 && reduceDim >= 0 && group.reduceDim != reduceDim))
    return false;
  bool joins = true;
  auto pointerOf = [&](Value tile) { return buffer(tile) ? buffer(tile)->pointer : Value(); };
  for (const NestRoot &other : group.roots) {
    Value otherWrites = other.op ? viewWrittenBy(other.op) : Value();
    Value writes = root.op ? viewWrittenBy(root.op) : Value();
    if (otherWrites && writes && placement_.mayAlias(otherWrites, writes) && !areDisjointWindows(other.op, root.op))
      return false;
    forEachSource(root, [&](Value source, Operation *read, bool inPlace) {
      if (other.op && llvm::is_contained(other.op->getResults(), source))
        joins = false;
      if (!other.op && other.value == source && !inPlace)
        joins = false;
      if (!other.op && other.value != source && pointerOf(source) == other.buffer.pointer)
        joins = false; // what was there before
      if (read && otherWrites && placement_.mayAlias(otherWrites, viewReadBy(read)) &&
          !areDisjointWindows(other.op, read))
        joins = false;
    });
    forEachSource(other, [&](Value source, Operation *read, bool inPlace) {
      if (!root.op && !inPlace && pointerOf(source) == root.buffer.pointer)
        joins = false;
      if (read && writes && placement_.mayAlias(viewReadBy(read), writes) && !areDisjointWindows(read, root.op) &&
          !(inPlace && areSameWindow(read, root.op)))
        joins = false;
    });
    if (!joins)
      return false;
  }
  return true;
}

void LoopEmitter::addRoot(ArrayRef<int64_t> shape, int reduceDim, bool scalarOnly, NestRoot root) {
  if (pending_ && !canJoin(shape, reduceDim, scalarOnly, root))
    flush();
  if (!pending_)
    pending_ = NestGroup{SmallVector<int64_t>(shape), -1, scalarOnly, {}};
  if (reduceDim >= 0)
    pending_->reduceDim = reduceDim;
  pending_->roots.push_back(std::move(root));
}

/// Whether an element of a tile is made of memory.
static bool readsMemory(Value tile) {
  SmallVector<Value> work = {tile};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (llvm::isa<tile::LoadOp, tile::GatherOp>(op))
      return true;
    work.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Whether the group's loops wait for memory, and all that becomes of a tile becomes of it in the group's roots,
/// element by element. What writes numbers of 16 bits waits for its own computing, which then wants all registers for
/// itself.
bool LoopEmitter::isOnlyFor(const NestGroup &group, Value tile) {
  constexpr unsigned leastBytes = 4;
  bool waits = llvm::all_of(group.roots, [](const NestRoot &root) {
    auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op);
    return store && byteSize(memoryType(store.getView().getType().getElementType())) >= leastBytes;
  });
  if (!waits || group.reduceDim >= 0 || group.scalarOnly)
    return false;
  if (readsMemory(tile.getDefiningOp<tile::RandomBitsOp>().getCounter())) // which the roots may write meanwhile
    return false;
  SmallVector<Value> work = {tile};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (llvm::any_of(group.roots, [&](const NestRoot &root) { return root.op == user; }))
        continue;
      if (!isPulled(user) || !isElementwise(user) || placement_.needsBuffer(user->getResult(0)))
        return false;
      if (seen.insert(user).second)
        work.push_back(user->getResult(0));
    }
  return true;
}

void LoopEmitter::flush() {
  std::optional<NestGroup> next = std::move(pending_);
  pending_.reset();
  for (NestRoot &root : std::exchange(undrawn_, {})) {
    auto draw = root.value.getDefiningOp<tile::RandomBitsOp>();
    ArrayRef<int64_t> shape = draw.getType().getShape();
    if (next && ArrayRef(next->shape) == shape && isOnlyFor(*next, root.value) && Nest::drawsInLumps(isa_, draw)) {
      next->drawn.push_back(std::move(root));
      continue;
    }
    pending_ = NestGroup{SmallVector<int64_t>(shape), -1, false, {std::move(root)}};
    flush();
  }
  if (!next)
    return;
  NestGroup group = std::move(*next);
  SmallVector<std::pair<Value, Buffer>> inMaking; // no buffer to read from yet
  for (const NestRoot &root : group.roots)
    if (computes(root) && buffers_.contains(root.value))
      inMaking.push_back({root.value, root.buffer});
  for (auto &[value, buffer] : inMaking)
    buffers_.erase(value);
  Nest(*this, group).emit();
  for (auto &[value, buffer] : inMaking)
    buffers_[value] = buffer;
}

void LoopEmitter::materialize(Value tile, const Buffer &buffer) {
  NestRoot root;
  root.value = tile;
  root.buffer = buffer;
  addRoot(llvm::cast<RankedTensorType>(tile.getType()).getShape(), -1, false, std::move(root));
}

} // namespace tenon::cpu
