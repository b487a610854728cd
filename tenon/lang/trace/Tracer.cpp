// SPDX-License-Identifier: Apache-2.0
#include "tenon/lang/trace/Tracer.h"

#include "tenon/base/Words.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;

namespace tenon {
namespace {
thread_local Tracer *currentTracer = nullptr;
} // namespace

//===--- Variables ------------------------------------------------------------------------------------------------===//

void detail::Variable::link() {
  if (Tracer *tracer = Tracer::currentOrNull())
    tracer->link(*this);
}

void detail::Variable::unlink() {
  if (tracer_)
    tracer_->unlink(*this);
}

void Tracer::link(detail::Variable &variable) {
  variable.tracer_ = this;
  variable.next_ = variables_;
  if (variables_)
    variables_->previous_ = &variable;
  variables_ = &variable;
}

void Tracer::unlink(detail::Variable &variable) {
  (variable.previous_ ? variable.previous_->next_ : variables_) = variable.next_;
  if (variable.next_)
    variable.next_->previous_ = variable.previous_;
  variable.tracer_ = nullptr;
  variable.previous_ = variable.next_ = nullptr;
}

void Tracer::replaceInVariables(Value from, Value to) {
  forEachVariable([&](detail::Variable &variable) {
    if (valueOf(variable.handle()) == from)
      assign(variable, to);
  });
}

//===--- The trace ------------------------------------------------------------------------------------------------===//

Tracer::Tracer(MLIRContext &context, const Kernel &kernel)
    : outer_(currentTracer), builder_(&context), location_(builder_.getUnknownLoc()) {
  lastLine_ = kernel.where();
  location_ = FileLineColLoc::get(builder_.getStringAttr(lastLine_.file), lastLine_.line, 0);
  module_ = ModuleOp::create(location_);
  builder_.setInsertionPointToEnd(module_->getBody());
  function_ = create<func::FuncOp>(kernel.name(), builder_.getFunctionType({}, {}));
  builder_.setInsertionPointToEnd(function_.addEntryBlock());
  currentTracer = this;
}

Tracer::~Tracer() {
  // Variables that outlive the trace (captured by reference in the kernel, say) must not reach into it any more.
  while (variables_) {
    variables_->handle_.value = nullptr;
    unlink(*variables_);
  }
  currentTracer = outer_;
}

Tracer *Tracer::currentOrNull() { return currentTracer; }

namespace {
constexpr const char *noTrace =
    "tiles, views and indices exist only while a kernel is traced: use them inside a Kernel's lambda";
} // namespace

Tracer &Tracer::current() {
  if (!currentTracer)
    throw Error(noTrace);
  return *currentTracer;
}

Tracer &Tracer::currentAt(const std::source_location &where) {
  if (!currentTracer)
    throw Error(where, noTrace);
  currentTracer->at(where);
  return *currentTracer;
}

Location Tracer::at(const std::source_location &where) {
  if (pins_)
    return location_;
  lastLine_ = SourceLine(where);
  location_ = FileLineColLoc::get(builder_.getStringAttr(where.file_name()), where.line(), where.column());
  return location_;
}

Value Tracer::use(const detail::Handle &handle) {
  if (!handle.value)
    throw Error(lastLine_, "this variable holds no value yet: assign to it before using it");
  Value value = valueOf(handle);
  if (!value.getParentRegion()->isAncestor(builder_.getInsertionBlock()->getParent()))
    throw Error(lastLine_, "value used outside its loop or branch: declare the variable, with an initial value, before "
                           "the loop or branch");
  return value;
}

void Tracer::fail(Error error) {
  if (!failure_)
    failure_ = std::move(error);
}

void Tracer::raise() const {
  if (failure_)
    throw *failure_;
}

void Tracer::finish(Verified verified) {
  raise();
  create<func::ReturnOp>();
  if (verified == Verified::no)
    return;
  std::string diagnostics;
  ScopedDiagnosticHandler handler(builder_.getContext(), [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "; ";
    return success();
  });
  if (failed(verify(*module_)))
    throw InternalError("the traced program does not verify: " + diagnostics);
}

//===--- Types and values -----------------------------------------------------------------------------------------===//

Type elementType(MLIRContext *context, DType type) {
  Builder b(context);
  switch (type) {
  case DType::f64: return b.getF64Type();
  case DType::f32: return b.getF32Type();
  case DType::f16: return b.getF16Type();
  case DType::bf16: return b.getBF16Type();
  case DType::f8e4m3: return b.getFloat8E4M3FNType();
  case DType::f8e5m2: return b.getFloat8E5M2Type();
  case DType::boolean: return b.getI1Type();
  default: return b.getIntegerType(8 * sizeOf(type));
  }
}

Type tileType(MLIRContext *context, DType type, const Shape &shape) {
  Type element = elementType(context, type);
  return shape.empty() ? element : RankedTensorType::get(shape, element);
}

Shape shapeOf(Value value) {
  if (auto tensor = llvm::dyn_cast<RankedTensorType>(value.getType()))
    return Shape(tensor.getShape().begin(), tensor.getShape().end());
  return {};
}

std::string toString(const Shape &shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

void checkShape(DType type, const Shape &shape, const SourceLine &where) {
  if (shape.empty())
    throw Error(where, "a tile has at least one dimension");
  if (shape.size() > tile::maxRank)
    throw Error(where, "a tile has at most " + std::to_string(tile::maxRank) + " dimensions, and this shape has " +
                           std::to_string(shape.size()) + ": " + toString(shape));
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 1)
      throw Error(where, "every dimension of a tile is at least 1, and this shape is " + toString(shape));
    if (extent > tile::maxTileElements || (elements *= extent) > tile::maxTileElements)
      throw Error(where, "a tile of shape " + toString(shape) + " is too large: the limit is " +
                             std::to_string(tile::maxTileElements) + " elements; loop over smaller tiles");
  }
}

void checkDim(int dim, int rank, const SourceLine &where) {
  if (dim < 0 || dim >= rank)
    throw Error(where, "dimension " + std::to_string(dim) + " of a tile with " + counted(rank, "dimension") +
                           ": the last one is " + std::to_string(rank - 1));
}

namespace {

/// A C++ number as a float of the format, rounded once; the 8-bit formats saturate as everywhere.
llvm::APFloat literal(const Arg &arg, const llvm::fltSemantics &format, DType type) {
  constexpr auto nearest = llvm::APFloat::rmNearestTiesToEven;
  llvm::APFloat value(format);
  if (arg.kind == Arg::Kind::integer) {
    value.convertFromAPInt(llvm::APInt(64, arg.integer), /*IsSigned=*/!arg.isUnsigned, nearest);
  } else {
    value = llvm::APFloat(arg.real);
    bool losesInfo;
    value.convert(format, nearest, &losesInfo);
  }
  if (isFloat8(type) && !std::isnan(arg.real) && (value.isNaN() || value.isInfinity()))
    value = llvm::APFloat::getLargest(format, /*Negative=*/arg.real < 0);
  return value;
}

} // namespace

Value materialize(const Arg &arg, DType type, bool asIndex) {
  Tracer &t = Tracer::current();
  if (arg.kind == Arg::Kind::tile)
    return t.use(arg.handle);
  auto where = SourceLine(arg.where);
  OpBuilder &b = t.builder();
  if (asIndex) {
    if (arg.isUnsigned && arg.integer < 0)
      throw Error(where, "the number " + std::to_string(static_cast<uint64_t>(arg.integer)) + " does not fit an index");
    return t.create<arith::ConstantOp>(b.getIndexAttr(arg.integer));
  }
  if (isFloat(type)) {
    if (arg.kind == Arg::Kind::truth)
      throw Error(where, "a boolean where a number of type " + std::string(nameOf(type)) + " is expected");
    auto floatType = llvm::cast<FloatType>(elementType(b.getContext(), type));
    return t.create<arith::ConstantOp>(FloatAttr::get(floatType, literal(arg, floatType.getFloatSemantics(), type)));
  }
  if (arg.kind == Arg::Kind::real)
    throw Error(where, "the number " + std::to_string(arg.real) + " where a value of type " +
                           std::string(nameOf(type)) +
                           " is expected: use a whole number, or convert the tile with .to(f32) first");
  if (type == DType::boolean) {
    if (arg.kind != Arg::Kind::truth && arg.integer != 0 && arg.integer != 1)
      throw Error(where, "the number " + std::to_string(arg.integer) + " where a boolean is expected");
    return t.create<arith::ConstantOp>(b.getBoolAttr(arg.integer != 0));
  }
  unsigned bits = 8 * sizeOf(type);
  bool isNegative = !arg.isUnsigned && arg.integer < 0;
  bool fits = isUnsigned(type) ? !isNegative && llvm::isUIntN(bits, static_cast<uint64_t>(arg.integer))
                               : llvm::isIntN(bits, arg.integer) && (isNegative || arg.integer >= 0);
  if (!fits)
    throw Error(where, "the number " +
                           (arg.isUnsigned ? std::to_string(static_cast<uint64_t>(arg.integer))
                                           : std::to_string(arg.integer)) +
                           " does not fit " + std::string(nameOf(type)));
  return t.create<arith::ConstantOp>(b.getIntegerAttr(b.getIntegerType(bits), arg.integer));
}

Value materializeIndex(const Arg &arg) {
  Tracer &t = Tracer::current();
  if (arg.kind != Arg::Kind::tile) {
    if (arg.kind == Arg::Kind::real)
      throw Error(arg.where, "an index is an integer, not " + std::to_string(arg.real));
    return materialize(arg, DType::i64, /*asIndex=*/true);
  }
  Value value = t.use(arg.handle);
  if (value.getType().isIndex())
    return value;
  if (!shapeOf(value).empty() || !isInteger(arg.handle.dtype))
    throw Error(arg.where, "an index is an integer scalar, not " + std::string(nameOf(arg.handle.dtype)) + " of shape " +
                               toString(shapeOf(value)));
  return t.create<tile::CastOp>(t.builder().getIndexType(), value, isUnsigned(arg.handle.dtype));
}

Shape broadcastShapes(const Shape &a, const Shape &b, const SourceLine &where) {
  size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t d = 0; d < rank; ++d) { // from the last dimension
    int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1, y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(where, "shape mismatch: " + toString(a) + " and " + toString(b) + " do not broadcast");
    result[rank - 1 - d] = std::max(x, y);
  }
  return result;
}

Value broadcastTo(Value value, const Shape &shape, const SourceLine &where) {
  Tracer &t = Tracer::current();
  Shape from = shapeOf(value);
  if (from == shape)
    return value;
  if (value.getType().isIndex()) // a tile's elements are never indices
    value = t.create<tile::CastOp>(t.builder().getI64Type(), value, /*is_unsigned=*/false);
  if (broadcastShapes(from, shape, where) != shape)
    throw Error(where, "shape mismatch: " + toString(from) + " does not broadcast to " + toString(shape));
  Type element = getElementTypeOrSelf(value.getType());
  auto type = RankedTensorType::get(shape, element);
  if (from.empty())
    return t.create<tile::SplatOp>(type, value);
  if (from.size() < shape.size()) {
    from.insert(from.begin(), shape.size() - from.size(), 1);
    value = t.create<tile::ReshapeOp>(RankedTensorType::get(from, element), value);
  }
  return from == shape ? value : t.create<tile::BroadcastOp>(type, value).getResult();
}

Value castTo(Value value, DType from, DType to) {
  if (from == to)
    return value;
  Tracer &t = Tracer::current();
  Type type = tileType(t.builder().getContext(), to, shapeOf(value));
  if (to == DType::boolean) { // "differs from zero", where a cast would keep the low bit
    Attribute zero = t.builder().getZeroAttr(value.getType());
    Value zeroValue = t.create<arith::ConstantOp>(llvm::cast<TypedAttr>(zero));
    if (isFloat(from)) {
      if (isFloat8(from)) {
        Value wide = castTo(value, from, DType::f32);
        return castTo(wide, DType::f32, to);
      }
      return t.create<arith::CmpFOp>(arith::CmpFPredicate::UNE, value, zeroValue);
    }
    return t.create<arith::CmpIOp>(arith::CmpIPredicate::ne, value, zeroValue);
  }
  if (value.getType() == type) // i32 to u32: the same bits
    return value;
  bool isUnsignedCast = isFloat(from) ? isUnsigned(to) : isUnsigned(from) || from == DType::boolean;
  return t.create<tile::CastOp>(type, value, isUnsignedCast);
}

} // namespace tenon
