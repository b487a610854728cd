// SPDX-License-Identifier: Apache-2.0
//
// tile.load and tile.store: every thread moves the elements of its own registers, as wide as is known to be right.
//
// The address of a register is (view + offsets + the thread's coordinates), computed once, plus what the register adds:
// a constant along the contiguous dimension, a multiple of the stride along the others. An access of several elements must
// be aligned, and bounds must not cut it: both follow from what the view's address, sizes and strides and the offsets are
// known to be multiples of.
#include "tenon/compiler/target/nvidia/threads/Access.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

AccessWidth accessWidth(Value view, ValueRange offsets, ArrayRef<int64_t> shape, Divisibility &divisibility) {
  int64_t bytes = byteSize(memoryType(llvm::cast<tile::ViewType>(view.getType()).getElementType()));
  AccessWidth found{16 / bytes, 16 / bytes, ""};
  std::optional<int64_t> contiguous = contiguousDim(view);
  if (!contiguous) {
    found.limitTo(1, "no dimension of the view has stride 1");
    return found;
  }
  ViewAlignment known = alignmentOf(view);
  found.limitTo(known.bytes / bytes, "the view's address is not known to be a multiple of 16 bytes");
  for (size_t d = 0; d < shape.size(); ++d)
    if (static_cast<int64_t>(d) != *contiguous)
      found.limitTo(known.strides[d], "the view's rows are not known to begin at multiples of 16 bytes");
  found.limitTo(divisibility.of(offsets[*contiguous]), "the offset is not known to be a multiple of 16 bytes");
  found.limitTo(known.sizes[*contiguous], "the view's size is not known to be a multiple of 16 bytes");
  int64_t size = shape[*contiguous];
  found.limitTo(size & -size, "the tile's size is no multiple of 16 bytes");
  return found;
}

namespace {

bool hasReductions(func::FuncOp kernel) {
  return kernel.walk([](tile::ReduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool hasDots(func::FuncOp kernel) {
  return kernel.walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether the kernel is one run through its tiles, element by element.
bool streams(func::FuncOp kernel) {
  return !kernel
              .walk([&](Operation *op) {
                bool isMore = (op->getNumRegions() && op != kernel) || llvm::isa<tile::DotOp, ConvertOp>(op);
                return isMore ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// The bytes that one access moves, as a type.
Type accessType(Type memory, int64_t width) { return width == 1 ? memory : VectorType::get({width}, memory); }

/// Whether each thread holds 16 bytes of neighbours at least.
bool canBeUnaligned(const ViewWords &view, const Distribution &tile) {
  return view.unitStride >= 0 && tile.consecutive(view.unitStride) * byteSize(memoryType(view.element)) >= 16;
}

/// Registers of what else waits for a reduction: values that are used behind it and are not computed again. And those
/// of addresses, where each element has one of its own.
int64_t waitingBeside(func::FuncOp kernel, const llvm::SmallPtrSetImpl<Operation *> &loads) {
  constexpr int64_t few = 4; // one value a row
  int64_t most = 0;
  kernel.walk([&](tile::ReduceOp reduce) {
    Block *block = reduce->getBlock();
    int64_t live = 0;
    for (Operation &op : llvm::make_range(block->begin(), reduce->getIterator())) {
      auto type =
          llvm::dyn_cast_if_present<RankedTensorType>(op.getNumResults() == 1 ? op.getResult(0).getType() : Type());
      if (!type || loads.contains(&op) || op.hasTrait<OpTrait::ConstantLike>() ||
          llvm::isa<AgainOp, tile::SplatOp, tile::BroadcastOp, tile::IotaOp>(op))
        continue;
      bool isUsed = llvm::any_of(op.getUsers(), [&](Operation *user) {
        Operation *here = block->findAncestorOpInBlock(*user);
        return here && reduce->isBeforeInBlock(here);
      });
      if (int64_t registers = Distribution(type).registers(); isUsed && registers > few)
        live += registers;
    }
    most = std::max(most, live);
  });
  kernel.walk([&](Operation *op) {
    if (llvm::isa<tile::GatherOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op))
      for (Type type : op->getOperandTypes())
        if (auto tile = llvm::dyn_cast<RankedTensorType>(type))
          most = std::max<int64_t>(most, Distribution(tile).registers());
  });
  return most;
}

} // namespace

std::shared_ptr<ThreadEmitter::UnalignedLoad> ThreadEmitter::startUnalignedLoad(tile::LoadOp op, bool isInside) {
  const Distribution &tile = distribution(op);
  AccessWidth width = widthOf(op.getView(), op.getOffsets(), tile);
  if (!canBeUnaligned(views_.find(op.getView())->second, tile) || !prefersUnaligned(op, width.elements))
    return nullptr;
  tellUnaligned(op, "load", width);
  return startUnalignedLoad(op, std::make_unique<Access>(*this, op.getView(), op.getOffsets(), tile), paddingOf(op),
                            isInside);
}

/// What stands outside the view, as memory has it.
Value ThreadEmitter::paddingOf(tile::LoadOp op) {
  Type element = typeOf(op).getElementType(), memory = memoryType(element);
  if (op.getPadding())
    return toMemory(b_, scalar(op.getPadding()), element);
  return llvm::isa<FloatType>(memory) ? constantLike(b_, memory, 0) : constantBits(b_, memory, 0);
}

void ThreadEmitter::emitLoad(tile::LoadOp op) {
  if (auto reason = op->getAttrOfType<StringAttr>(notAsyncAttr))
    remark(op.getLoc(), "load does not run ahead of its loop: " + reason.str());
  if (std::shared_ptr<UnalignedLoad> load = startUnalignedLoad(op))
    return finishUnalignedLoad(*load);
  const Distribution &tile = distribution(op);
  Access access(*this, op.getView(), op.getOffsets(), tile);
  AccessWidth width = widthOf(op.getView(), op.getOffsets(), tile);
  Type element = access.view.element, memory = memoryType(element), moved = accessType(memory, width.elements);
  Value padding = paddingOf(op);
  if (width.elements > 1)
    padding = b_.create<vector::SplatOp>(moved, padding);
  // Rows that wait for a reduction are many at once, and what L2 has of them must not make room for what is written.
  bool lasting = hasReductions(kernel_) && !hasDots(kernel_);
  bool byWords = hasReductions(kernel_) || streams(kernel_);
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(width.elements)) {
    if (!tile.exists(reg))
      continue;
    auto [address, constant] = access.address(reg);
    // Past the tile's edge is memory of another instance, which may be writing it.
    Value mask = isWritten(op.getView()) ? both(access.mask(reg), holdsElement(tile, reg)) : access.mask(reg);
    Value raw = loadGlobal(moved, address, constant, mask, padding, lasting);
    loaded_[op].push_back(raw);
    unpack(raw, element, MutableArrayRef<Value>(values).slice(reg, width.elements), byWords);
  }
  registers(op) = std::move(values);
  tellAccess(op, "load", access, width);
}

/// What one access brought in, as registers have it. Two bf16 are the halves of a word: a shift makes an f32 of the
/// one, a mask of the other, where taking the word apart first would cost another instruction. Not (`byWords`) of
/// memory in kernels whose registers are not limited: there the assembler then issues loads later than it otherwise
/// does, which costs more.
void ThreadEmitter::unpack(Value raw, Type element, MutableArrayRef<Value> values, bool byWords) {
  auto type = llvm::dyn_cast<VectorType>(raw.getType());
  if (!type) {
    values[0] = fromMemory(b_, raw, element);
    return;
  }
  if (!element.isBF16() || !byWords) {
    for (auto [i, value] : llvm::enumerate(values))
      value = fromMemory(b_, b_.create<vector::ExtractOp>(raw, static_cast<int64_t>(i)), element);
    return;
  }
  Value words = b_.create<vector::BitCastOp>(VectorType::get({type.getNumElements() / 2}, b_.getI32Type()), raw);
  for (size_t i = 0; i < values.size(); i += 2) {
    Value word = b_.create<vector::ExtractOp>(words, static_cast<int64_t>(i / 2));
    values[i] = b_.create<arith::BitcastOp>(b_.getF32Type(), b_.create<arith::ShLIOp>(word, i32(16)));
    values[i + 1] = b_.create<arith::BitcastOp>(b_.getF32Type(), b_.create<arith::AndIOp>(word, i32(0xffff0000)));
  }
}

/// The words of the load, each combined with a zero that nobody but the hardware knows to be one (what a lane gets from
/// itself by a shuffle is what it had): neither LLVM nor the assembler can tell that what is computed from them is what
/// was computed before, and keep that in registers.
LogicalResult ThreadEmitter::emitAgain(AgainOp op) {
  auto found = loaded_.find(op.getValue());
  if (found == loaded_.end())
    return op.emitOpError("is not of a tile that was loaded into registers");
  const Distribution &tile = distribution(op);
  Type element = typeOf(op).getElementType();
  Value known = toBits(*llvm::find_if(registers(op.getAfter()), [](Value value) { return bool(value); }));
  if (known.getType().isInteger(64))
    known = b_.create<arith::TruncIOp>(b_.getI32Type(), known);
  known = b_.create<arith::XOrIOp>(known, threadId_); // of a value that all lanes have in common it would know
  Value lane = b_.create<arith::AndIOp>(threadId_, i32(31));
  Value zero = b_.create<arith::XOrIOp>(known, shuffle(ShuffleMode::idx, known, lane));
  Registers values(tile.registers());
  int reg = 0;
  for (Value raw : found->second) {
    while (!tile.exists(reg))
      ++reg;
    auto type = llvm::dyn_cast<VectorType>(raw.getType());
    int64_t count = type ? type.getNumElements() : 1, bytes = count * byteSize(memoryType(element));
    if (type && bytes % 4 == 0) {
      auto words = VectorType::get({bytes / 4}, b_.getI32Type());
      Value hidden = b_.create<arith::XOrIOp>(b_.create<vector::BitCastOp>(words, raw),
                                              b_.create<vector::SplatOp>(words, zero));
      raw = b_.create<vector::BitCastOp>(type, hidden);
    }
    unpack(raw, element, MutableArrayRef<Value>(values).slice(reg, count), /*byWords=*/true);
    reg += static_cast<int>(count);
  }
  registers(op) = std::move(values);
  return success();
}

/// How many blocks are to fit on a multiprocessor, which the assembler takes for how many registers it may use: those
/// for the words that wait, what waits beside them, and some to compute with. Where values are computed again after a
/// reduction, so that more blocks fit; and where a kernel only streams through memory, 16 bytes of narrow elements at
/// once, so that loads are not put off for more blocks than that.
void ThreadEmitter::limitRegisters() {
  constexpr int64_t ofMultiprocessor = 65536, least = 40;
  int64_t toComputeWith = 20;
  llvm::SmallPtrSet<Operation *, 4> loads;
  kernel_.walk([&](AgainOp again) { loads.insert(again.getValue().getDefiningOp()); });
  if (loads.empty() && streams(kernel_)) {
    kernel_.walk([&](tile::LoadOp load) { loads.insert(load); });
    bool areNarrow = llvm::all_of(loads, [&](Operation *op) {
      auto load = llvm::cast<tile::LoadOp>(op);
      int64_t bytes = byteSize(memoryType(load.getType().getElementType()));
      return bytes <= 2 && widthOf(load.getView(), load.getOffsets(), distribution(load)).elements * bytes == 16;
    });
    if (!areNarrow)
      return;
    toComputeWith = 28;
  }
  int64_t words = 0;
  for (Operation *load : loads)
    for (Value raw : loaded_.lookup(load->getResult(0))) {
      auto type = llvm::dyn_cast<VectorType>(raw.getType());
      int64_t elements = type ? type.getNumElements() : 1;
      words += llvm::divideCeil(elements * byteSize(getElementTypeOrSelf(raw.getType())), 4);
    }
  if (!words)
    return;
  words += waitingBeside(kernel_, loads);
  int64_t registers = std::max(least, static_cast<int64_t>(llvm::alignTo(words + toComputeWith, 8)));
  if (int64_t blocks = ofMultiprocessor / (registers * options_.threads); blocks > 1)
    function_->setAttr(minimumBlocksAttr, b_.getI64IntegerAttr(std::min<int64_t>(blocks, 32)));
}

void ThreadEmitter::emitStore(tile::StoreOp op) {
  if (op->hasAttr(bulkAttr))
    return emitBulkStore(op);
  const Distribution &tile = distribution(op.getValue());
  Access access(*this, op.getView(), op.getOffsets(), tile);
  AccessWidth width = widthOf(op.getView(), op.getOffsets(), tile);
  if (canBeUnaligned(access.view, tile) && prefersUnaligned(op, width.elements)) {
    emitUnalignedStore(op, access);
    return tellUnaligned(op, "store", width);
  }
  Type element = access.view.element, moved = accessType(memoryType(element), width.elements);
  Value owner = isOwner(tile);
  const Registers &values = registers(op.getValue());
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(width.elements)) {
    if (!tile.exists(reg))
      continue;
    Value value = packMemory(ArrayRef<Value>(values).slice(reg, width.elements), element, moved);
    auto [address, constant] = access.address(reg);
    Value mask = both(both(access.mask(reg), holdsElement(tile, reg)), owner);
    storeGlobal(value, address, constant, mask);
  }
  tellAccess(op, "store", access, width);
}

AccessWidth ThreadEmitter::widthOf(Value view, ValueRange offsets, const Distribution &tile) {
  AccessWidth width = accessWidth(view, offsets, tile.shape(), divisibility_);
  if (std::optional<int64_t> contiguous = contiguousDim(view))
    width.limitTo(tile.consecutive(*contiguous), "a thread holds too few consecutive elements");
  return width;
}

/// Register values of one access in the form memory has.
Value ThreadEmitter::packMemory(ArrayRef<Value> values, Type element, Type moved) {
  if (values.size() == 1)
    return toMemory(b_, values[0], element);
  SmallVector<Value> raw;
  for (Value value : values)
    raw.push_back(toMemory(b_, value, element));
  return b_.create<vector::FromElementsOp>(moved, raw);
}

/// What an access does not do as well as it could: its width, and the bounds that are checked as the kernel runs.
void ThreadEmitter::tellAccess(Operation *op, const char *what, const Access &access, const AccessWidth &width) {
  if (width.elements < width.widest)
    remark(op->getLoc(), std::string(what) + " of " + std::to_string(width.elements * access.bytes) +
                             " bytes a thread instead of 16: " + width.limit);
  std::map<int64_t, int> checks; // by dimension
  for (const auto &[place, compare] : access.inside)
    ++checks[place.first];
  if (checks.empty())
    return;
  std::string dimensions;
  int all = 0;
  for (auto [dim, count] : checks) {
    dimensions += (dimensions.empty() ? "" : ", ") + std::to_string(dim);
    all += count;
  }
  remark(op->getLoc(), std::string(what) + " checks bounds in dimension" + (checks.size() > 1 ? "s " : " ") +
                           dimensions + ": " + std::to_string(all) + " comparisons a thread");
}

} // namespace tenon::nvidia
