// SPDX-License-Identifier: Apache-2.0
//
// Walks one kernel in program order. Scalar ops are copied; pulled tile ops emit nothing until a loop needs their elements;
// the others (roots) become loop nests, and neighbours with the same iteration space share one.
#include "tenon/compiler/target/cpu/LoopEmitter.h"

#include "tenon/compiler/target/cpu/DotKept.h"

#include "tenon/compiler/target/cpu/KeepOperands.h"
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }
ArrayRef<int64_t> shapeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape(); }
Type elementOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getElementType(); }

} // namespace

Buffer withShape(const Buffer &buffer, ArrayRef<int64_t> shape) {
  Buffer other = buffer;
  other.shape.assign(shape.begin(), shape.end());
  other.strides.assign(shape.size(), 1);
  for (int d = static_cast<int>(shape.size()) - 2; d >= 0; --d)
    other.strides[d] = other.strides[d + 1] * shape[d + 1];
  return other;
}

LoopEmitter::LoopEmitter(func::FuncOp kernel, const Isa &isa, ModuleOp target)
    : kernel_(kernel), isa_(isa), target_(target), b_(kernel.getLoc(), target.getContext()), placement_(kernel),
      pairedTiles_(kernel, placement_, isa) {}

//===--- Values ---------------------------------------------------------------------------------------------------===//

Value LoopEmitter::index(int64_t value) {
  OpBuilder::InsertionGuard guard(b_);
  // Constants live at the top of the function, each once: nests recognise equal coordinates by their value.
  Block &entry = b_.getInsertionBlock()->getParent()->getParentOfType<func::FuncOp>().getBody().front();
  for (Operation &op : entry) {
    auto constant = llvm::dyn_cast<arith::ConstantIndexOp>(op);
    if (!constant)
      break;
    if (constant.value() == value)
      return constant;
  }
  b_.setInsertionPointToStart(&entry);
  return b_.create<arith::ConstantIndexOp>(value);
}

Value LoopEmitter::scalar(Value tileScalar) { return scalars_.lookup(tileScalar); }

const Buffer *LoopEmitter::buffer(Value tile) {
  auto found = buffers_.find(tile);
  if (found != buffers_.end())
    return &found->second;
  // A reshape that mixes dimensions is its operand's buffer in another shape.
  auto reshape = tile.getDefiningOp<tile::ReshapeOp>();
  if (!reshape || isUnitReshape(reshape))
    return nullptr;
  const Buffer *source = buffer(reshape.getValue());
  assert((!source || source->strides == withShape(*source, source->shape).strides) && "rows without anything between");
  return source ? &(buffers_[tile] = withShape(*source, shapeOf(tile))) : nullptr;
}

/// Addresses in scratch are computed once, after the constants.
LLVM::GEPOp LoopEmitter::scratchAddress(int64_t at) {
  OpBuilder::InsertionGuard guard(b_);
  Block &entry = b_.getInsertionBlock()->getParent()->getParentOfType<func::FuncOp>().getBody().front();
  auto behindConstants = entry.begin();
  while (llvm::isa<arith::ConstantIndexOp>(*behindConstants))
    ++behindConstants;
  b_.setInsertionPoint(&entry, behindConstants);
  auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
  return b_.create<LLVM::GEPOp>(pointer, b_.getI8Type(), scratch_, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(at)});
}

Buffer LoopEmitter::allocate(ArrayRef<int64_t> shape, Type element, int64_t rowPadding) {
  Buffer buffer = withShape({{}, {}, {}, element}, shape);
  if (rowPadding && shape.size() == 2)
    buffer.strides[0] += rowPadding;
  int64_t elements = buffer.strides[0] * shape[0];
  int64_t bytes = elements * byteSize(scratchType(element));
  buffer.pointer = scratchAddress(usedScratch_);
  usedScratch_ += llvm::alignTo(bytes, 64);
  peakScratch_ = std::max(peakScratch_, usedScratch_);
  return buffer;
}

LoopEmitter::Kept LoopEmitter::allocateKept(int64_t bytes) {
  kept_.push_back({scratchAddress(0), scratchAddress(0), bytes});
  return kept_.back();
}

Buffer LoopEmitter::bufferFor(Value tile) {
  if (auto found = destinations_.find(tile); found != destinations_.end())
    return found->second;
  return allocate(shapeOf(tile), elementOf(tile));
}

Value LoopEmitter::stringConstant(StringRef text) {
  std::string name = "text_" + std::to_string(llvm::hash_value(text));
  auto global = target_.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(target_.getBody());
    std::string terminated = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(b_.getI8Type(), terminated.size());
    global = b_.create<LLVM::GlobalOp>(type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                                       b_.getStringAttr(terminated));
  }
  return b_.create<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(b_.getContext()), name);
}

Value LoopEmitter::streamingThreshold() {
  constexpr const char *name = "tenon_streaming_bytes";
  Type i64 = b_.getI64Type();
  if (!target_.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(target_.getBody());
    b_.create<LLVM::GlobalOp>(i64, /*isConstant=*/true, LLVM::Linkage::External, name, Attribute());
  }
  Value address = b_.create<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(b_.getContext()), name);
  return b_.create<LLVM::LoadOp>(i64, address, 8, /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/true);
}

Buffer LoopEmitter::constantBuffer(arith::ConstantOp constant) {
  Buffer buffer = withShape({{}, {}, {}, elementOf(constant)}, shapeOf(constant));
  Type stored = scratchType(buffer.element);
  SmallVector<Attribute> values;
  for (Attribute value : llvm::cast<DenseElementsAttr>(constant.getValue()).getValues<Attribute>()) {
    if (auto number = llvm::dyn_cast<FloatAttr>(value))
      values.push_back(b_.getFloatAttr(stored, number.getValueAsDouble()));
    else
      values.push_back(
          b_.getIntegerAttr(stored, llvm::cast<IntegerAttr>(value).getValue().zext(stored.getIntOrFloatBitWidth())));
  }
  auto data = DenseElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(values.size())}, stored), values);
  std::string name = "data_" + std::to_string(nextConstant_++);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(target_.getBody());
    b_.create<LLVM::GlobalOp>(LLVM::LLVMArrayType::get(stored, values.size()), /*isConstant=*/true,
                              LLVM::Linkage::Internal, name, data, /*alignment=*/64);
  }
  buffer.pointer = b_.create<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(b_.getContext()), name);
  return buffer;
}

void LoopEmitter::callRuntime(StringRef name, ArrayRef<Value> arguments) {
  if (!target_.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(target_.getBody());
    SmallVector<Type> types;
    for (Value argument : arguments)
      types.push_back(argument.getType());
    b_.create<LLVM::LLVMFuncOp>(name, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b_.getContext()), types));
  }
  b_.create<LLVM::CallOp>(TypeRange{}, name, arguments);
}

void LoopEmitter::remark(Location where, const std::string &text) {
  std::string place = placeOf(where);
  std::string full = place.empty() ? text : place + ": " + text;
  if (!llvm::is_contained(remarks_, full)) // the checked and the unchecked nest say the same
    remarks_.push_back(std::move(full));
}

//===--- The program ----------------------------------------------------------------------------------------------===//

LogicalResult LoopEmitter::emitScalarOp(Operation &op) {
  b_.setLoc(op.getLoc());
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op)) {
    Type type = registerType(constant.getType());
    if (type != constant.getType()) {
      scalars_[constant] = constantLike(b_, type, llvm::cast<FloatAttr>(constant.getValue()).getValueAsDouble());
    } else if (type.isIndex()) {
      scalars_[constant] = index(llvm::cast<IntegerAttr>(constant.getValue()).getInt());
    } else {
      scalars_[constant] = b_.create<arith::ConstantOp>(constant.getValue());
    }
    return success();
  }
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(scalars_.lookup(operand));
  if (!isElementwise(&op))
    return op.emitOpError("is not known to the CPU target");
  scalars_[op.getResult(0)] = elementwise(b_, &op, operands);
  return success();
}

LogicalResult LoopEmitter::emitOp(Operation &op) {
  b_.setLoc(op.getLoc());
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
    flush();
    return emitFor(loop);
  }
  if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
    flush();
    return emitIf(branch);
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<tile::GridOp>([&](auto grid) {
        for (auto [i, id] : llvm::enumerate(grid.getIds()))
          scalars_[id] = b_.create<arith::IndexCastOp>(b_.getIndexType(), pids_[i]);
        return success();
      })
      .Case<tile::RequireOp>([](auto) { return success(); })
      .Case<tile::WorkspaceOp>([&](auto workspace) {
        views_[workspace] = readView(args_, nextWorkspaceWord_, workspace.getView().getType(),
                                     workspace.getView().getType().getRank() - 1);
        return success();
      })
      .Case<tile::SizeOp>([&](auto size) {
        scalars_[size] = view(size.getView()).sizes[size.getDim()];
        return success();
      })
      .Case<tile::ScalarOp>([&](auto scalarOp) {
        flush();
        NestGroup none;
        scalars_[scalarOp] = Nest(*this, none).emitScalar(scalarOp.getValue());
        return success();
      })
      .Case<tile::StoreOp, tile::ScatterOp>([&](auto store) {
        NestRoot root;
        root.op = store;
        addRoot(shapeOf(store.getValue()), -1, false, std::move(root));
        return success();
      })
      .Case<tile::ReduceOp>([&](auto reduce) {
        if (tile::LoadOp load = keptLoadOf(reduce)) {
          emitKept(reduce, load);
          return success();
        }
        NestRoot root;
        root.op = reduce;
        addRoot(shapeOf(reduce.getValues()[0]), reduce.getDim(), false, std::move(root));
        for (Value result : reduce.getResults())
          buffers_[result] = bufferFor(result);
        return success();
      })
      .template Case<tile::ScanOp>([&](auto scan) {
        flush();
        NestGroup group;
        group.shape.assign(shapeOf(scan.getValues()[0]).begin(), shapeOf(scan.getValues()[0]).end());
        NestRoot root;
        root.op = scan;
        group.roots.push_back(std::move(root));
        SmallVector<Buffer> results;
        for (Value result : scan.getResults())
          results.push_back(bufferFor(result));
        Nest(*this, group).emitScan(scan, results);
        for (auto [result, buffer] : llvm::zip(scan.getResults(), results))
          buffers_[result] = buffer;
        return success();
      })
      .template Case<tile::AtomicRMWOp, tile::AtomicCASOp>([&](auto atomic) {
        flush();
        if constexpr (std::is_same_v<decltype(atomic), tile::AtomicRMWOp>)
          if (emitTallied(atomic))
            return success();
        Value result = atomic.getOld();
        if (!result.use_empty())
          buffers_[result] = bufferFor(result);
        NestRoot root;
        root.op = atomic;
        addRoot(shapeOf(result), -1, /*scalarOnly=*/true, std::move(root));
        flush();
        return success();
      })
      .template Case<tile::AssertOp>([&](auto assertOp) {
        flush();
        Value condition = assertOp.getCondition();
        NestRoot root;
        root.op = assertOp;
        if (isTile(condition)) {
          addRoot(shapeOf(condition), -1, /*scalarOnly=*/true, std::move(root));
        } else { // a scalar: a nest over one element that does not pull anything
          NestGroup group{{1}, -1, true, {root}};
          Nest(*this, group).emit();
        }
        flush();
        return success();
      })
      .template Case<tile::ConcatOp>([&](auto concat) {
        emitConcat(concat);
        return success();
      })
      .template Case<tile::DotOp>([&](auto dot) {
        flush();
        emitDot(dot);
        return success();
      })
      .template Case<tile::PrintOp>([&](auto print) {
        flush();
        emitPrint(print);
        return success();
      })
      .Default([&](Operation *other) -> LogicalResult {
        if (isPulled(other)) {
          Value value = other->getResult(0);
          if (auto constant = llvm::dyn_cast<arith::ConstantOp>(other);
              constant && !llvm::isa<SplatElementsAttr>(constant.getValue())) {
            buffers_[value] = constantBuffer(constant);
            return success();
          }
          auto reshape = llvm::dyn_cast<tile::ReshapeOp>(other);
          if (placement_.needsBuffer(value) && !(reshape && !isUnitReshape(reshape))) {
            // The rows of a dot's operand are padded as its own copies are.
            Buffer buffer = other->hasAttr(operandAttr)
                                ? allocate(shapeOf(value), elementOf(value), operandPadding / byteSize(elementOf(value)))
                                : bufferFor(value);
            if (llvm::isa<tile::RandomBitsOp>(other)) { // see Placement: not in a loop with others
              if (pending_)
                flush();
              undrawn_.push_back({nullptr, value, buffer});
            } else {
              materialize(value, buffer);
            }
            buffers_[value] = buffer;
          } else if (reshape && !isUnitReshape(reshape)) {
            flush(); // the operand's buffer must be complete before it is seen in another shape
          }
          return success();
        }
        if (isRoot(other))
          return other->emitOpError("is not known to the CPU target");
        return emitScalarOp(*other);
      });
}

LogicalResult LoopEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitOp(op)))
      return failure();
  return success();
}

void LoopEmitter::emitConcat(tile::ConcatOp op) {
  flush();
  Buffer whole = bufferFor(op.getResult());
  int64_t at = 0, dim = op.getDim();
  NestGroup columns;
  columns.isInterleaved = Nest::interleaves(op);
  for (Value part : op.getValues()) {
    Buffer piece = whole;
    piece.shape.assign(shapeOf(part).begin(), shapeOf(part).end());
    piece.pointer =
        b_.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b_.getContext()), scratchType(whole.element), whole.pointer,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(at * whole.strides[dim])});
    NestRoot root;
    root.value = part;
    root.buffer = piece;
    columns.shape.assign(piece.shape.begin(), piece.shape.end());
    columns.roots.push_back(root);
    at += shapeOf(part)[dim];
    if (columns.isInterleaved)
      continue;
    Nest(*this, columns).emit();
    columns.roots.clear();
  }
  if (columns.isInterleaved)
    Nest(*this, columns).emit();
  buffers_[op.getResult()] = whole;
}

void LoopEmitter::emitPrint(tile::PrintOp op) {
  Value value = op.getValue();
  Type element = isTile(value) ? elementOf(value) : value.getType();
  SmallVector<int64_t> shape;
  Buffer buffer;
  if (isTile(value)) {
    shape.assign(shapeOf(value).begin(), shapeOf(value).end());
    buffer = allocate(shape, element);
    materialize(value, buffer);
    flush();
  } else {
    if (element.isIndex())
      element = b_.getI64Type();
    buffer = allocate({1}, element);
    Value raw = castElements(b_, scalar(value), op.getValue().getType(), element, false);
    b_.create<LLVM::StoreOp>(element.isInteger(1) ? toMemory(b_, raw, element) : raw, buffer.pointer);
  }
  // "f32 4 8": the element type as it lies in scratch, then the extents.
  Type stored = scratchType(element);
  std::string description =
      element.isInteger(1) ? "bool" : (llvm::isa<FloatType>(stored) ? "f" : op.getIsUnsigned() ? "u" : "i") +
                                          std::to_string(stored.getIntOrFloatBitWidth());
  for (int64_t extent : shape)
    description += " " + std::to_string(extent);
  SmallVector<Value> arguments = {context_, stringConstant(op.getLabel()), stringConstant(description), buffer.pointer};
  llvm::append_range(arguments, pids_);
  callRuntime("tenon_print", arguments);
}

//===--- The function ---------------------------------------------------------------------------------------------===//

ViewParts LoopEmitter::readView(Value args, int64_t &word, tile::ViewType type, int unitStride) {
  auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
  auto read = [&](Type as) -> Value {
    Value at = b_.create<LLVM::GEPOp>(pointer, b_.getI64Type(), args,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(word++)});
    return b_.create<LLVM::LoadOp>(as, at, 8, /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/true);
  };
  ViewParts parts;
  parts.element = type.getElementType();
  parts.pointer = read(pointer);
  parts.unitStride = unitStride;
  for (auto *list : {&parts.sizes, &parts.strides})
    for (unsigned d = 0; d < type.getRank(); ++d)
      list->push_back(b_.create<arith::IndexCastOp>(b_.getIndexType(), read(b_.getI64Type())));
  return parts;
}

void LoopEmitter::bindArguments() {
  int64_t word = 0;
  auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
  for (BlockArgument argument : kernel_.getArguments()) {
    if (auto type = llvm::dyn_cast<tile::ViewType>(argument.getType())) {
      auto unit = kernel_.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::unitStrideAttr);
      views_[argument] = readView(args_, word, type, unit ? unit.getInt() : -1);
      continue;
    }
    Value at = b_.create<LLVM::GEPOp>(pointer, b_.getI64Type(), args_,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(word++)});
    Type type = argument.getType().isIndex() ? b_.getI64Type() : memoryType(argument.getType());
    Value raw = b_.create<LLVM::LoadOp>(type, at, 8);
    scalars_[argument] = argument.getType().isIndex() ? b_.create<arith::IndexCastOp>(b_.getIndexType(), raw).getResult()
                                                      : fromMemory(b_, raw, argument.getType());
  }
  nextWorkspaceWord_ = word;
}

LogicalResult LoopEmitter::run() {
  b_.setInsertionPointToEnd(target_.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
  Type i64 = b_.getI64Type();
  auto function = b_.create<func::FuncOp>(
      "instance", b_.getFunctionType({pointer, i64, i64, i64, pointer, pointer}, {}));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  b_.setInsertionPointToEnd(entry);
  b_.create<func::ReturnOp>();
  b_.setInsertionPoint(entry->getTerminator());
  args_ = entry->getArgument(0);
  pids_.assign({entry->getArgument(1), entry->getArgument(2), entry->getArgument(3)});
  scratch_ = entry->getArgument(4);
  context_ = entry->getArgument(5);
  bindArguments();
  for (const auto &[value, why] : placement_.reasons()) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    int64_t bytes = type.getNumElements() * byteSize(scratchType(type.getElementType()));
    remark(value.getLoc(), "kept in scratch memory (" + std::to_string(bytes) + " bytes): " + why);
  }
  if (failed(emitBlock(kernel_.getBody().front())))
    return failure();
  flush();
  prefetch_.emit(b_, isa_.bringsCached, isa_.bringsRows);
  for (Kept &kept : kept_) {
    kept.place.setRawConstantIndices(static_cast<int32_t>(peakScratch_));
    peakScratch_ += llvm::alignTo(kept.bytes, 64);
  }
  for (Kept &kept : kept_) {
    kept.note.setRawConstantIndices(static_cast<int32_t>(peakScratch_));
    peakScratch_ += keptNoteBytes;
    noteBytes_ += keptNoteBytes;
  }
  return success();
}

} // namespace tenon::cpu
