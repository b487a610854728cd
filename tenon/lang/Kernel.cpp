// SPDX-License-Identifier: Apache-2.0
#include "tenon/lang/Kernel.h"

#include "tenon/base/Words.h"
#include "tenon/lang/trace/Tracer.h"

#include <algorithm>
#include <charconv>

using namespace mlir;

namespace tenon {

struct Kernel::Definition {
  std::string name;
  std::vector<KernelParameter> parameters;
  SourceLine where;
  Body body;
  std::shared_ptr<void> compiled = std::make_shared<CompiledPlace>();
};

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

bool isIdentifier(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

/// "softmax(x, y, cols=1024)" -> name and parameters; kinds come from the lambda.
std::pair<std::string, std::vector<KernelParameter>> parseSignature(const std::string &signature,
                                                                    const std::vector<ParameterKind> &kinds,
                                                                    const SourceLine &where) {
  auto refuse = [&](const std::string &reason) -> Error {
    return Error(where, "the signature \"" + signature + "\" " + reason +
                            "; it looks like \"scale(x, y, factor, width=1024)\"");
  };
  size_t open = signature.find('(');
  if (open == std::string::npos || signature.back() != ')')
    throw refuse("has no parameter list");
  std::string name(trim(std::string_view(signature).substr(0, open)));
  if (!isIdentifier(name))
    throw refuse("does not begin with a name");
  std::string_view list = trim(std::string_view(signature).substr(open + 1, signature.size() - open - 2));
  std::vector<KernelParameter> parameters;
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view item = trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : trim(list.substr(comma + 1));
    if (parameters.size() == kinds.size())
      throw refuse("names more parameters than the lambda has (" + std::to_string(kinds.size()) + ")");
    KernelParameter parameter{"", kinds[parameters.size()], std::nullopt};
    size_t equals = item.find('=');
    parameter.name = trim(item.substr(0, equals));
    if (!isIdentifier(parameter.name))
      throw refuse("has a parameter without a name");
    for (const KernelParameter &other : parameters)
      if (other.name == parameter.name)
        throw refuse("names '" + parameter.name + "' twice");
    if (equals != std::string_view::npos) {
      if (parameter.kind != ParameterKind::param)
        throw refuse("gives '" + parameter.name + "' a default, which only a Param may have");
      std::string_view digits = trim(item.substr(equals + 1));
      int64_t value = 0;
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size())
        throw refuse("has a default for '" + parameter.name + "' that is not an integer");
      parameter.defaultValue = value;
    }
    parameters.push_back(std::move(parameter));
  }
  if (parameters.size() != kinds.size())
    throw refuse("names " + counted(static_cast<int64_t>(parameters.size()), "parameter") + " and the lambda has " +
                 std::to_string(kinds.size()));
  return {std::move(name), std::move(parameters)};
}

} // namespace

Kernel::Kernel(const std::string &signature, std::vector<ParameterKind> kinds, Body body, std::source_location where)
    : definition_(std::make_shared<Definition>()) {
  definition_->where = SourceLine(where);
  std::tie(definition_->name, definition_->parameters) = parseSignature(signature, kinds, definition_->where);
  definition_->body = std::move(body);
}

const std::string &Kernel::name() const { return definition_->name; }
const std::vector<KernelParameter> &Kernel::parameters() const { return definition_->parameters; }
const SourceLine &Kernel::where() const { return definition_->where; }
const Kernel::Body &Kernel::body() const { return definition_->body; }
std::shared_ptr<void> &Kernel::compiled() const { return definition_->compiled; }

OwningOpRef<ModuleOp> traceKernel(const Kernel &kernel, std::span<const ArgumentSpec> arguments, bool noOverlap,
                                  MLIRContext &context, Verified verified) {
  tile::loadTileDialects(context);
  Tracer tracer(context, kernel);
  func::FuncOp function = tracer.function();
  Builder b(&context);
  std::vector<Kernel::BoundArgument> bound;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.kind == ParameterKind::param) {
      bound.emplace_back(argument.value);
      continue;
    }
    Type type = argument.kind == ParameterKind::index    ? Type(b.getIndexType())
                : argument.kind == ParameterKind::scalar ? Type(b.getF64Type())
                                                         : tile::ViewType::get(&context, argument.rank,
                                                                               elementType(&context, argument.dtype));
    unsigned position = function.getNumArguments();
    function.insertArgument(position, type, b.getDictionaryAttr({}), tracer.location());
    function.setArgAttr(position, tile::argumentNameAttr, b.getStringAttr(kernel.parameters()[i].name));
    if (argument.kind == ParameterKind::view && argument.unitStride >= 0)
      function.setArgAttr(position, tile::unitStrideAttr, b.getI64IntegerAttr(argument.unitStride));
    if (argument.kind == ParameterKind::view && argument.distinct)
      function.setArgAttr(position, tile::distinctAttr, b.getUnitAttr());
    if (!argument.divisible.empty())
      function.setArgAttr(position, tile::divisibleAttr, b.getDenseI64ArrayAttr(argument.divisible));
    Value value = function.getArgument(position);
    if (argument.kind == ParameterKind::index)
      bound.emplace_back(Index(handleOf(value, DType::i64)));
    else if (argument.kind == ParameterKind::scalar)
      bound.emplace_back(Scalar(handleOf(value, DType::f64)));
    else
      bound.emplace_back(View(handleOf(value, argument.dtype)));
  }
  if (noOverlap)
    function->setAttr(tile::noOverlapAttr, b.getUnitAttr());
  try {
    kernel.body()(bound);
  } catch (const Error &) {
    tracer.raise(); // a broken-off loop came first, and what followed was traced inside it
    throw;
  }
  bound.clear();
  tracer.finish(verified);
  return tracer.takeModule();
}

} // namespace tenon
