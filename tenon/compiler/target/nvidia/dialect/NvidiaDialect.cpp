// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

/// " : f32" for all accumulators and results of an op: they have one type, and the number of operands is that of types.
static ParseResult parseAccumulators(OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> accumulators,
                                     SmallVectorImpl<Type> &types, SmallVectorImpl<Type> &results) {
  if (accumulators.empty())
    return success();
  Type type;
  if (parser.parseColonType(type))
    return failure();
  types.assign(accumulators.size(), type);
  results.assign(accumulators.size(), type);
  return success();
}
static void printAccumulators(OpAsmPrinter &printer, Operation *, OperandRange accumulators, TypeRange types,
                              TypeRange) {
  if (!accumulators.empty())
    printer << " : " << types.front();
}

#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.cpp.inc"
#include "tenon/compiler/target/nvidia/dialect/NvidiaEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tenon/compiler/target/nvidia/dialect/NvidiaAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "tenon/compiler/target/nvidia/dialect/NvidiaOps.cpp.inc"

namespace tenon::nvidia {
namespace {

/// Layouts are long and few: each is printed once, at the top, and named #layout, #layout1, ... in the program.
struct PrintsAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &stream) const override {
    if (!llvm::isa<LayoutAttr>(attribute))
      return AliasResult::NoAlias;
    stream << "layout";
    return AliasResult::FinalAlias;
  }
};

} // namespace

void NvidiaDialect::initialize() {
  addInterfaces<PrintsAliases>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tenon/compiler/target/nvidia/dialect/NvidiaAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tenon/compiler/target/nvidia/dialect/NvidiaOps.cpp.inc"
      >();
}

namespace {

/// "" when a thread can move a value of this type in one access of memory.
std::string refuseAccess(Type type, Space space, Type address) {
  if (address.isInteger(64) != (space == Space::global))
    return "needs an i64 address for global memory and an i32 one for shared memory";
  Type element = type;
  int64_t count = 1;
  if (auto vector = llvm::dyn_cast<VectorType>(type)) {
    element = vector.getElementType();
    count = vector.getNumElements();
  }
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8)
    return "moves bytes: an integer or float of 8, 16, 32 or 64 bits, or a vector of them";
  int64_t bytes = count * element.getIntOrFloatBitWidth() / 8;
  if (bytes > 16 || (bytes & (bytes - 1)))
    return "moves 1, 2, 4, 8 or 16 bytes, not " + std::to_string(bytes);
  return "";
}

/// The bytes that an access of shared memory may touch, if they are said.
LogicalResult verifyWindow(Operation *op, std::optional<ArrayRef<int64_t>> window) {
  if (window && (window->size() != 2 || (*window)[0] < 0 || (*window)[0] >= (*window)[1]))
    return op->emitOpError("needs a window of two numbers: its first byte and the one past its last");
  return success();
}

bool isByteInteger(OperandType type) { return type == OperandType::s8 || type == OperandType::u8; }
bool isByteFloat(OperandType type) { return type == OperandType::e4m3 || type == OperandType::e5m2; }

/// Whether the matrix units multiply elements of these types.
LogicalResult verifyFactors(Operation *op, OperandType a, OperandType b) {
  if (a == b || (isByteInteger(a) && isByteInteger(b)) || (isByteFloat(a) && isByteFloat(b)))
    return success();
  return op->emitOpError("multiplies operands of one type, or any two of s8 and u8, or of e4m3 and e5m2");
}

LogicalResult verifyCoordinates(Operation *op, size_t count) {
  if (count < 1 || count > 5)
    return op->emitOpError("has 1 to 5 coordinates, not ") << count;
  return success();
}

/// Accumulators come back as what they are.
LogicalResult verifyAccumulators(Operation *op, TypeRange accumulators, TypeRange results) {
  if (accumulators != results)
    return op->emitOpError("has the types of its accumulators as results");
  return success();
}

} // namespace

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  int64_t rank = 0;
  if (parser.parseLess() || parser.parseInteger(rank))
    return {};
  SmallVector<int64_t> bases[4];
  const char *names[] = {"register", "lane", "warp", "block"};
  for (int unit = 0; unit < 4; ++unit) {
    auto parseOne = [&] { return parser.parseInteger(bases[unit].emplace_back()); };
    if (parser.parseComma() || parser.parseKeyword(names[unit]) || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(), rank, bases[0],
                    bases[1], bases[2], bases[3]);
}

LogicalResult LayoutAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t rank,
                                 ArrayRef<int64_t> reg, ArrayRef<int64_t> lane, ArrayRef<int64_t> warp,
                                 ArrayRef<int64_t> block) {
  if (rank < 1)
    return emitError() << "a layout has at least one dimension, not " << rank;
  for (ArrayRef<int64_t> bases : {reg, lane, warp, block}) {
    if (bases.size() % rank)
      return emitError() << "a layout of rank " << rank << " has that many coordinates for each bit, and "
                         << bases.size() << " are no multiple of it";
    if (llvm::any_of(bases, [](int64_t step) { return step < 0 || (step & (step - 1)); }))
      return emitError() << "a bit of a layout moves by a power of two, or not at all";
  }
  return success();
}

void LayoutAttr::print(AsmPrinter &printer) const {
  auto list = [&](const char *name, ArrayRef<int64_t> bases) {
    printer << ", " << name << " = [";
    llvm::interleaveComma(bases, printer.getStream());
    printer << "]";
  };
  printer << "<" << getRank();
  list("register", getReg());
  list("lane", getLane());
  list("warp", getWarp());
  list("block", getBlock());
  printer << ">";
}

LogicalResult ConvertOp::verify() {
  auto from = llvm::cast<RankedTensorType>(getValue().getType()), to = llvm::cast<RankedTensorType>(getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("changes the layout only, not ") << from << " to " << to;
  return success();
}

LogicalResult LoadOp::verify() {
  if (std::string reason = refuseAccess(getResult().getType(), getSpace(), getAddress().getType()); !reason.empty())
    return emitOpError(reason);
  if (bool(getMask()) != bool(getOtherwise()))
    return emitOpError("needs a value for where the mask is false, and only then");
  if (getOtherwise() && getOtherwise().getType() != getResult().getType())
    return emitOpError("needs an `otherwise` of the result's type");
  return verifyWindow(*this, getWindow());
}

LogicalResult StoreOp::verify() {
  if (std::string reason = refuseAccess(getValue().getType(), getSpace(), getAddress().getType()); !reason.empty())
    return emitOpError(reason);
  return verifyWindow(*this, getWindow());
}

LogicalResult MbarrierArriveOp::verify() {
  if (getBehind() && (!getCluster() || getBytes()))
    return emitOpError("is behind what was read only in another block, and without expecting bytes");
  return success();
}

LogicalResult LdMatrixOp::verify() { return verifyWindow(*this, getWindow()); }
LogicalResult StMatrixOp::verify() { return verifyWindow(*this, getWindow()); }

LogicalResult AtomicOp::verify() {
  bool isFloat = llvm::isa<FloatType>(getValue().getType());
  if (getKind() != AtomicKind::exchange && isFloat != (getKind() == AtomicKind::fadd))
    return emitOpError() << stringifyAtomicKind(getKind()) << " is of " << (isFloat ? "integers" : "floats")
                         << ", not of " << getValue().getType();
  return success();
}

LogicalResult CpAsyncOp::verify() {
  if (getBytes() != 4 && getBytes() != 8 && getBytes() != 16)
    return emitOpError("copies 4, 8 or 16 bytes, not ") << getBytes();
  return verifyWindow(*this, getWindow());
}

LogicalResult PackOp::verify() {
  if (getType() != OperandType::f16 && getType() != OperandType::bf16)
    return emitOpError("packs f16 or bf16");
  return success();
}

LogicalResult MmaOp::verify() {
  auto is = [](Value value, int64_t count, auto &&element) {
    auto type = llvm::cast<VectorType>(value.getType());
    return type.getRank() == 1 && type.getNumElements() == count && element(type.getElementType());
  };
  auto isI32 = [](Type type) { return type.isInteger(32); };
  auto isF32 = [](Type type) { return type.isF32(); };
  auto isF64 = [](Type type) { return type.isF64(); };
  if (failed(verifyFactors(*this, getAType(), getBType())))
    return failure();
  bool fits = getAType() == OperandType::f64
                  ? is(getA(), 1, isF64) && is(getB(), 1, isF64) && is(getC(), 2, isF64)
                  : is(getA(), 4, isI32) && is(getB(), 2, isI32) &&
                        (isByteInteger(getAType()) ? is(getC(), 4, isI32) : is(getC(), 4, isF32));
  if (!fits)
    return emitOpError("has fragments of the wrong length or type: see the op's table");
  return success();
}

LogicalResult TensorMapOp::verify() {
  if (int32_t(getNumber()) < 0)
    return emitOpError("needs a number from 0");
  return success();
}

LogicalResult TmaLoadOp::verify() {
  if (failed(verifyCoordinates(*this, getCoordinates().size())))
    return failure();
  return verifyWindow(*this, getWindow());
}

LogicalResult TmaPrefetchOp::verify() { return verifyCoordinates(*this, getCoordinates().size()); }

LogicalResult TmaStoreOp::verify() {
  if (failed(verifyCoordinates(*this, getCoordinates().size())))
    return failure();
  return verifyWindow(*this, getWindow());
}

LogicalResult WgmmaOp::verify() {
  OperandType a = getAType(), b = getBType();
  if (a == OperandType::f64)
    return emitOpError("does not multiply f64");
  if (failed(verifyFactors(*this, a, b)))
    return failure();
  int64_t n = getN();
  if (n < 8 || n > 256 || n % 8)
    return emitOpError("has 8, 16, ... 256 columns, not ") << n;
  if (isByteInteger(a) && n % 16 && n != 8 && n != 24)
    return emitOpError("of s8 and u8 has 8, 16, 24, 32, 48, ... 256 columns, not ") << n;
  if ((getTransA() || getTransB()) && a != OperandType::f16 && a != OperandType::bf16)
    return emitOpError("has MN-major operands only of f16 and bf16");
  bool fromRegisters = getA().size() == 4 && llvm::all_of(getA(), [](Value v) { return v.getType().isInteger(32); });
  if (!fromRegisters && !(getA().size() == 1 && getA()[0].getType().isInteger(64)))
    return emitOpError("needs `a` as one i64 descriptor or four i32 registers");
  if (fromRegisters && getTransA())
    return emitOpError("has an MN-major `a` only in shared memory");
  auto isElement = [&](Type type) { return isByteInteger(a) ? type.isInteger(32) : type.isF32(); };
  if (int64_t(getAccumulators().size()) != n / 2 || !llvm::all_of(getAccumulators().getTypes(), isElement))
    return emitOpError("needs ") << n / 2 << (isByteInteger(a) ? " i32" : " f32") << " accumulators";
  if (failed(verifyWindow(*this, getWindowA())) || failed(verifyWindow(*this, getWindowB())))
    return failure();
  return verifyAccumulators(*this, getAccumulators().getTypes(), getResultTypes());
}

LogicalResult WgmmaWaitOp::verify() {
  return verifyAccumulators(*this, getAccumulators().getTypes(), getResultTypes());
}

LogicalResult SetMaxRegistersOp::verify() {
  int64_t count = getCount();
  if (count < 24 || count > 256 || count % 8)
    return emitOpError("gives a thread 24, 32, ... 256 registers, not ") << count;
  return success();
}

} // namespace tenon::nvidia
