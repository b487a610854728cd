// SPDX-License-Identifier: Apache-2.0
//
// Loads, stores, atomics, asynchronous copies.
//
// An access without a mask is a plain load or store, which LLVM may combine and order between barriers as it likes. One
// with a mask is a predicated instruction, not a branch:
//
//     %v = nvidia.load global %a mask %m otherwise %o : vector<4xf32> : i64 -> vector<4xf32>
// becomes
//     @%p ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%a];     // the registers hold %o before
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

using Values = SmallVector<Value>;

/// ".v4.b32" for four 32-bit registers; one byte travels in a 16-bit register.
std::string widthOf(Type type, ArrayRef<Type> registers) {
  auto vector = dyn_cast<VectorType>(type);
  Type element = vector ? vector.getElementType() : type;
  int64_t bytes = (vector ? vector.getNumElements() : 1) * element.getIntOrFloatBitWidth() / 8;
  std::string count = registers.size() > 1 ? ".v" + std::to_string(registers.size()) : "";
  return count + ".b" + std::to_string(bytes == 1 ? 8 : registers[0].getIntOrFloatBitWidth());
}

const char *nameOf(Space space) {
  switch (space) {
  case Space::global:
    return ".global";
  case Space::shared:
    return ".shared::cta";
  case Space::cluster:
    return ".shared::cluster";
  }
  return "";
}

/// What stands between the brackets: an absolute address.
Value absolute(PtxBuilder &e, Space space, Value address) {
  return space == Space::shared ? e.sharedAddress(address) : address;
}

std::string place(unsigned operand, int64_t offset) {
  return "[$" + std::to_string(operand) + (offset ? "+" + std::to_string(offset) : "") + "]";
}

std::string list(unsigned first, unsigned count) {
  return count == 1 ? "$" + std::to_string(first) : registerList(first, count);
}

std::string predicate(bool masked, unsigned operand) {
  return masked ? "@$" + std::to_string(operand) + " " : "";
}

/// The type in which LLVM moves a value in one access: small elements as the registers they fill.
Type accessType(PtxBuilder &e, Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getElementTypeBitWidth() >= 32)
    return type;
  SmallVector<Type> registers = e.registerTypes(type);
  if (vector.getNumElements() == 1)
    return vector.getElementType();
  return registers.size() == 1 ? registers[0] : VectorType::get(registers.size(), registers[0]);
}

int64_t bytesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8 : type.getIntOrFloatBitWidth() / 8;
}

Values lowerLoad(LoadOp op, LoadOp::Adaptor operands, PtxBuilder &e) {
  Type type = e.converter.convertType(op.getType()); // an 8-bit float is an i8 here
  int64_t offset = op.getOffsetAttr().getInt(); // getOffset() has no sign
  bool masked = bool(op.getMask());
  bool lasting = op.getLasting() && op.getSpace() == Space::global;
  if (!masked && !op.getStreaming() && !lasting && op.getSpace() != Space::cluster) {
    Type access = accessType(e, type);
    Value value = e.b.create<LLVM::LoadOp>(access, e.pointer(op.getSpace(), operands.getAddress(), offset),
                                           /*alignment=*/bytesOf(type));
    return {access == type ? value : e.b.create<LLVM::BitcastOp>(type, value)};
  }
  SmallVector<Type> types = e.registerTypes(type);
  unsigned count = types.size();
  Values inputs = masked ? e.registers(operands.getOtherwise()) : Values();
  unsigned tied = inputs.size();
  inputs.push_back(absolute(e, op.getSpace(), operands.getAddress()));
  if (masked)
    inputs.push_back(operands.getMask());
  bool streaming = op.getStreaming() && op.getSpace() == Space::global;
  std::string text = predicate(masked, count + tied + 1) + "ld" + nameOf(op.getSpace()) +
                     (streaming ? ".L1::no_allocate" : "") + (lasting ? ".L2::cache_hint" : "") +
                     widthOf(type, types) + " " + list(0, count) + ", " + place(count + tied, offset);
  if (lasting) {
    text += ", $" + std::to_string(count + inputs.size());
    inputs.push_back(
        e.assembly(e.b.getI64Type(), {}, "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;", Effect::None)[0]);
  }
  text += ";";
  return {e.fromRegisters(e.assembly(types, inputs, text, Effect::Memory, tied), type)};
}

Values lowerStore(StoreOp op, StoreOp::Adaptor operands, PtxBuilder &e) {
  Value value = operands.getValue();
  Type type = value.getType();
  int64_t offset = op.getOffsetAttr().getInt(); // getOffset() has no sign
  bool masked = bool(op.getMask());
  if (!masked && !op.getStreaming() && op.getSpace() != Space::cluster) {
    Type access = accessType(e, type);
    if (access != type)
      value = e.b.create<LLVM::BitcastOp>(access, value);
    e.b.create<LLVM::StoreOp>(value, e.pointer(op.getSpace(), operands.getAddress(), offset),
                              /*alignment=*/bytesOf(type));
    return {};
  }
  Values inputs = e.registers(value);
  SmallVector<Type> types = e.registerTypes(type);
  unsigned count = inputs.size();
  inputs.push_back(absolute(e, op.getSpace(), operands.getAddress()));
  if (masked)
    inputs.push_back(operands.getMask());
  bool streaming = op.getStreaming() && op.getSpace() == Space::global;
  std::string text = predicate(masked, count + 1) + "st" + nameOf(op.getSpace()) + (streaming ? ".cs" : "") +
                     widthOf(type, types) + " " + place(count, offset) + ", " + list(0, count) + ";";
  e.assembly({}, inputs, text, Effect::Memory);
  return {};
}

/// The update and the type of its operand, as PTX has them: "add.u32".
std::string updateOf(AtomicKind kind, Type type) {
  std::string bits = std::to_string(type.getIntOrFloatBitWidth());
  switch (kind) {
  case AtomicKind::add:
    return "add.u" + bits;
  case AtomicKind::fadd:
    return "add.f" + bits;
  case AtomicKind::smax:
    return "max.s" + bits;
  case AtomicKind::smin:
    return "min.s" + bits;
  case AtomicKind::umax:
    return "max.u" + bits;
  case AtomicKind::umin:
    return "min.u" + bits;
  case AtomicKind::exchange:
    return "exch.b" + bits;
  }
  return "";
}

/// One atom instruction; where the mask is false its result is the zero that was there before.
Value atomic(PtxBuilder &e, const std::string &update, Value address, Values operands, Value mask) {
  Type type = operands[0].getType();
  Values inputs;
  if (mask)
    inputs.push_back(e.b.create<LLVM::ZeroOp>(type));
  unsigned tied = inputs.size();
  inputs.push_back(address);
  llvm::append_range(inputs, operands);
  if (mask)
    inputs.push_back(mask);
  unsigned first = 1 + tied;
  std::string text = predicate(bool(mask), first + 1 + operands.size()) + "atom.relaxed.gpu.global." + update +
                     " $0, [$" + std::to_string(first) + "]";
  for (unsigned i = 0; i < operands.size(); ++i)
    text += ", $" + std::to_string(first + 1 + i);
  return e.assembly(type, inputs, text + ";", Effect::Memory, tied)[0];
}

Values lowerAtomic(AtomicOp op, AtomicOp::Adaptor operands, PtxBuilder &e) {
  return {atomic(e, updateOf(op.getKind(), op.getValue().getType()), operands.getAddress(), {operands.getValue()},
                 operands.getMask())};
}

Values lowerAtomicCas(AtomicCasOp op, AtomicCasOp::Adaptor operands, PtxBuilder &e) {
  std::string bits = std::to_string(op.getExpected().getType().getIntOrFloatBitWidth());
  return {atomic(e, "cas.b" + bits, operands.getAddress(), {operands.getExpected(), operands.getDesired()},
                 operands.getMask())};
}

Values lowerMapShared(MapSharedOp op, MapSharedOp::Adaptor operands, PtxBuilder &e) {
  return e.assembly(e.b.getI32Type(), {e.sharedAddress(operands.getAddress()), operands.getRank()},
                    "mapa.shared::cluster.u32 $0, $1, $2;", Effect::None);
}

Values lowerStoreAsync(StoreAsyncOp op, StoreAsyncOp::Adaptor operands, PtxBuilder &e) {
  Values inputs = {operands.getAddress(), operands.getValue(), operands.getMbarrier()};
  if (op.getMask())
    inputs.push_back(operands.getMask());
  e.assembly({}, inputs,
             predicate(bool(op.getMask()), 3) + "st.async.shared::cluster.mbarrier::complete_tx::bytes.b" +
                 std::to_string(op.getValue().getType().getIntOrFloatBitWidth()) + " [$0], $1, [$2];",
             Effect::Memory);
  return {};
}

Values lowerCpAsync(CpAsyncOp op, CpAsyncOp::Adaptor operands, PtxBuilder &e) {
  // Only copies of 16 bytes may pass by L1.
  std::string bytes = std::to_string(op.getBytes());
  e.assembly({}, {e.sharedAddress(operands.getShared()), operands.getGlobal(), operands.getSourceBytes()},
             "cp.async." + llvm::Twine(op.getBytes() == 16 ? "cg" : "ca") + ".shared.global [$0], [$1], " + bytes +
                 ", $2;",
             Effect::Memory);
  return {};
}

Values lowerCpAsyncCommit(CpAsyncCommitOp, CpAsyncCommitOp::Adaptor, PtxBuilder &e) {
  e.assembly({}, {}, "cp.async.commit_group;", Effect::Memory);
  return {};
}

Values lowerCpAsyncWait(CpAsyncWaitOp op, CpAsyncWaitOp::Adaptor, PtxBuilder &e) {
  e.assembly({}, {}, "cp.async.wait_group " + llvm::Twine(op.getPending()) + ";", Effect::Memory);
  return {};
}

} // namespace

void addMemoryPatterns(RewritePatternSet &patterns, LLVMTypeConverter &converter, const Architecture &architecture) {
  addPattern<LoadOp>(patterns, converter, architecture, lowerLoad);
  addPattern<StoreOp>(patterns, converter, architecture, lowerStore);
  addPattern<AtomicOp>(patterns, converter, architecture, lowerAtomic);
  addPattern<AtomicCasOp>(patterns, converter, architecture, lowerAtomicCas);
  addPattern<MapSharedOp>(patterns, converter, architecture, lowerMapShared);
  addPattern<StoreAsyncOp>(patterns, converter, architecture, lowerStoreAsync);
  addPattern<CpAsyncOp>(patterns, converter, architecture, lowerCpAsync);
  addPattern<CpAsyncCommitOp>(patterns, converter, architecture, lowerCpAsyncCommit);
  addPattern<CpAsyncWaitOp>(patterns, converter, architecture, lowerCpAsyncWait);
}

} // namespace tenon::nvidia
