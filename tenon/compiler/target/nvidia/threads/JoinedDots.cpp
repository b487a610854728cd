// SPDX-License-Identifier: Apache-2.0
//
// Dots that multiply the same rows, by one instruction for all of them. Gate and up projections read one tile of A; as
// dots of their own each reads it from shared memory again, a third of what the matrix unit reads there where a dot has
// 128 columns. Where the tiles of B lie one behind the other they are one wider tile to the instruction, and the
// accumulators of the dots, one behind the other, those of one wider dot:
//
//     g = dot(x, gate, g)                 slot of the ring:  | x | gate | up |
//     u = dot(x, up, u)                   wgmma of as many columns as gate and up have together
//
// The first of them in the program stands for all.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

using namespace mlir;

namespace tenon::nvidia {

/// A dot, both of whose operands the accelerator brings.
struct ThreadEmitter::Joinable {
  tile::DotOp dot;
  Ring *ring;
  Transfer *right;
  bool alongK; ///< `right`
  WarpgroupShape shape;
};

std::optional<ThreadEmitter::Joinable> ThreadEmitter::joinable(tile::DotOp dot) {
  if (!dot->hasAttr(warpgroupAttr) || planDot(dot, options_.architecture).promotes)
    return std::nullopt;
  std::optional<LoadedOperand> left = traceToLoad(dot.getA()), right = traceToLoad(dot.getB());
  if (!left || !left->load->hasAttr(bulkAttr) || !right || right->load->getBlock() != dot->getBlock())
    return std::nullopt;
  WarpgroupShape shape = *warpgroupShape(dot, options_.threads / 32);
  if (shape.swapped || shape.overColumns > 1 || shape.columnBlocks() > 1)
    return std::nullopt;
  for (auto &ring : rings_)
    for (Transfer &transfer : ring->transfers)
      if (transfer.load == right->load) {
        bool alongK = right->dims[0] == transfer.columnDim;
        if (alongK && transfer.tile.panels() > 1)
          return std::nullopt; // the next tile would have to begin behind the first panel
        return Joinable{dot, ring.get(), &transfer, alongK, shape};
      }
  return std::nullopt;
}

/// Whether `next` can be started together with `first`, as its last columns: of a tile of `columns` so far.
bool ThreadEmitter::mayJoin(const Joinable &first, const Joinable &next, int64_t columns) {
  tile::DotOp one = first.dot, other = next.dot;
  Type element = one.getB().getType().getElementType();
  if (one.getA() != other.getA() || first.ring != next.ring || first.right == next.right ||
      first.alongK != next.alongK || element != other.getB().getType().getElementType() ||
      one.getType().getElementType() != other.getType().getElementType())
    return false;
  const OperandTile &tile = first.right->tile; // next's follows without a gap, and one descriptor says how both lie
  columns += next.shape.n;
  if (tile.panel != next.right->tile.panel || tile.isPadded() || tile.bytes() % panelAlignment ||
      columns > widestInstruction(4 * first.shape.overRows) || (element.isInteger(8) && columns % 16 && columns != 24))
    return false;
  // What `next` adds to is there, and not under way; nobody waits for `first` before `next` is started.
  Operation *sums = other.getAcc().getDefiningOp();
  if (sums && sums->getBlock() == one->getBlock() && (llvm::isa<tile::DotOp>(sums) || !sums->isBeforeInBlock(one)))
    return false;
  return llvm::all_of(one->getUsers(), [&](Operation *user) {
    Operation *here = one->getBlock()->findAncestorOpInBlock(*user);
    return !here || other->isBeforeInBlock(here);
  });
}

/// Also decides where in its slot each transfer goes.
void ThreadEmitter::planJoinedDots() {
  llvm::DenseSet<Transfer *> placed;
  auto place = [&](Ring &ring, Transfer &transfer) {
    if (!placed.insert(&transfer).second)
      return;
    transfer.begin = ring.slotBytes;
    ring.slotBytes += llvm::alignTo(transfer.tile.bytes(), panelAlignment);
  };
  kernel_.walk([&](Block *block) {
    SmallVector<Joinable> open;
    for (tile::DotOp dot : block->getOps<tile::DotOp>())
      if (std::optional<Joinable> found = joinable(dot); found && options_.steps.joinedDots)
        open.push_back(*found);
    for (auto first = open.begin(); first != open.end(); ++first) {
      if (placed.contains(first->right))
        continue;
      SmallVector<Joinable> group = {*first};
      int64_t columns = first->shape.n;
      for (auto next = std::next(first); next != open.end(); ++next)
        if (!placed.contains(next->right) &&
            llvm::all_of(group, [&](const Joinable &member) { return mayJoin(member, *next, columns); })) {
          columns += next->shape.n;
          group.push_back(*next);
        }
      if (group.size() == 1)
        continue;
      for (const Joinable &member : group) {
        joined_[first->dot].push_back(member.dot);
        place(*member.ring, *member.right);
        if (member.dot != first->dot)
          startedBefore_.insert(member.dot);
      }
      remark(first->dot.getLoc(), std::to_string(group.size()) + " dots of the same rows are multiplied together, in " +
                                      std::to_string(columns) + " columns");
    }
  });
  for (auto &ring : rings_)
    for (Transfer &transfer : ring->transfers)
      if (ring->steps.empty())
        place(*ring, transfer);
}

/// The dots that this one starts, itself first.
SmallVector<tile::DotOp> ThreadEmitter::startedWith(tile::DotOp dot) {
  auto found = joined_.find(dot);
  return found == joined_.end() ? SmallVector<tile::DotOp>{dot} : found->second;
}

} // namespace tenon::nvidia
