// SPDX-License-Identifier: Apache-2.0
#include "ClassicKernels.h"

#include "tenon/base/Error.h"
#include "tenon/lang/Kernel.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon::tool {
namespace {

DType computeType(const View &x) { return x.dtype() == f64 ? f64 : f32; }

/// y = f(x), element by element.
template <class F> Kernel elementwise(const std::string &name, F function) {
  return Kernel(name + "(x, y, rows=1, cols=1024)", [function](View x, View y, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile t = x.load({i * rows, j * cols}, {rows, cols}).to(computeType(x));
    y.store({i * rows, j * cols}, function(t).to(y.dtype()));
  });
}

/// z = f(x, y), element by element.
template <class F> Kernel combined(const std::string &name, F function) {
  return Kernel(name + "(x, y, z, rows=1, cols=1024)", [function](View x, View y, View z, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile a = x.load({i * rows, j * cols}, {rows, cols}).to(computeType(x));
    Tile b = y.load({i * rows, j * cols}, {rows, cols}).to(computeType(x));
    z.store({i * rows, j * cols}, function(a, b).to(z.dtype()));
  });
}

/// z = f(x, y of the row), element by element.
template <class F> Kernel withRow(const std::string &name, F function) {
  return Kernel(name + "(x, y, z, rows=1, cols=1024)", [function](View x, View y, View z, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile a = x.load({i * rows, j * cols}, {rows, cols}).to(computeType(x));
    Tile b = reshape(y.load({i * rows}, {rows}), {rows, 1}).to(computeType(x));
    z.store({i * rows, j * cols}, function(a, b).to(z.dtype()));
  });
}

const Kernel cube = elementwise("cube", [](const Tile &t) { return t * t * t; });
const Kernel scaleCube = elementwise("scale_cube", [](const Tile &t) { return t * 0.044715; });
const Kernel add = combined("add", [](const Tile &a, const Tile &b) { return a + b; });
const Kernel scaleSum = elementwise("scale_sum", [](const Tile &t) { return t * 0.7978845608028654; });
const Kernel takeTanh = elementwise("tanh", [](const Tile &t) { return tanh(t); });
const Kernel addOne = elementwise("add_one", [](const Tile &t) { return t + 1; });
const Kernel halve = elementwise("halve", [](const Tile &t) { return t * 0.5; });
const Kernel multiply = combined("multiply", [](const Tile &a, const Tile &b) { return a * b; });

const Kernel rowMax("row_max(x, y, rows=1, cols)", [](View x, View y, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}, -inf).to(computeType(x));
  y.store({i * rows}, reshape(max(t, 1), {rows}).to(y.dtype()));
});
const Kernel subtractRow = withRow("subtract_row", [](const Tile &a, const Tile &b) { return a - b; });
const Kernel takeExp = elementwise("exp", [](const Tile &t) { return exp(t); });
const Kernel rowSum("row_sum(x, y, rows=1, cols)", [](View x, View y, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(computeType(x));
  y.store({i * rows}, reshape(sum(t, 1), {rows}).to(y.dtype()));
});
const Kernel divideRow = withRow("divide_row", [](const Tile &a, const Tile &b) { return a / b; });

/// All values rounded to the type.
std::vector<double> rounded(DType dtype, std::vector<double> values) {
  for (double &value : values)
    value = roundTo(dtype, value);
  return values;
}

std::vector<double> geluInSteps(const std::vector<double> &x, DType dtype) {
  std::vector<double> t = x;
  auto step = [&](auto function) {
    for (size_t i = 0; i < t.size(); ++i)
      t[i] = roundTo(dtype, function(x[i], t[i]));
  };
  step([](double x, double) { return x * x * x; });
  step([](double, double t) { return t * 0.044715; });
  step([](double x, double t) { return x + t; });
  step([](double, double t) { return t * 0.7978845608028654; });
  step([](double, double t) { return std::tanh(t); });
  step([](double, double t) { return t + 1; });
  step([](double, double t) { return t * 0.5; });
  step([](double x, double t) { return x * t; });
  return t;
}

std::vector<double> softmaxInSteps(const std::vector<double> &x, size_t cols, DType dtype) {
  std::vector<double> t = x;
  for (size_t begin = 0; begin < t.size(); begin += cols) {
    auto row = t.begin() + static_cast<ptrdiff_t>(begin), end = row + static_cast<ptrdiff_t>(cols);
    double largest = *std::max_element(row, end), total = 0;
    for (auto at = row; at != end; ++at)
      total += *at = roundTo(dtype, std::exp(roundTo(dtype, *at - largest)));
    total = roundTo(dtype, total);
    for (auto at = row; at != end; ++at)
      *at = *at / total;
  }
  return rounded(dtype, t);
}

} // namespace

UnfusedSteps::UnfusedSteps(const std::string &work, const Tensor &x)
    : first_(Tensor::empty(x.dtype(), x.sizes(), x.device())), second_(Tensor::empty(x.dtype(), x.sizes(), x.device())),
      perRow_(Tensor::empty(x.dtype(), {x.size(0)}, x.device())) {
  if (work == "gelu_tanh")
    addGelu();
  else if (work == "softmax")
    addSoftmax();
  else
    throw Error("there are no separate steps of '" + work + "'");
}

void UnfusedSteps::addGelu() {
  auto unary = [&](const Kernel &kernel, Tensor from, Tensor to) {
    steps_.push_back({&kernel, [=](const Tensor &, const Tensor &) { return Arguments{from, to}; }});
  };
  steps_.push_back({&cube, [this](const Tensor &x, const Tensor &) { return Arguments{x, first_}; }});
  unary(scaleCube, first_, second_);
  steps_.push_back({&add, [this](const Tensor &x, const Tensor &) { return Arguments{x, second_, first_}; }});
  unary(scaleSum, first_, second_);
  unary(takeTanh, second_, first_);
  unary(addOne, first_, second_);
  unary(halve, second_, first_);
  steps_.push_back({&multiply, [this](const Tensor &x, const Tensor &y) { return Arguments{x, first_, y}; }});
}

void UnfusedSteps::addSoftmax() {
  steps_.push_back({&rowMax, [this](const Tensor &x, const Tensor &) { return Arguments{x, perRow_}; }, true});
  steps_.push_back({&subtractRow, [this](const Tensor &x, const Tensor &) { return Arguments{x, perRow_, first_}; }});
  steps_.push_back({&takeExp, [this](const Tensor &, const Tensor &) { return Arguments{first_, second_}; }});
  steps_.push_back({&rowSum, [this](const Tensor &, const Tensor &) { return Arguments{second_, perRow_}; }, true});
  steps_.push_back({&divideRow, [this](const Tensor &, const Tensor &y) { return Arguments{second_, perRow_, y}; }});
}

void UnfusedSteps::operator()(const Tensor &x, const Tensor &y, const LaunchOptions &options) const {
  for (const Step &step : steps_) {
    LaunchOptions own = options;
    own.params.clear();
    auto cols = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(x.size(1), 1))));
    own.params["cols"] = step.spansRows ? cols : std::min<int64_t>(cols, 1024);
    launch(*step.kernel, step.arguments(x, y), own);
  }
}

Problem roundedProblem(const std::string &work, Problem problem) {
  problem.plain = [work](Arguments &arguments) {
    const Tensor &x = arguments[0].tensor(), &y = arguments[1].tensor();
    std::vector<double> values = valuesOf<double>(x);
    setValues(y, work == "softmax" ? softmaxInSteps(values, static_cast<size_t>(x.size(1)), x.dtype())
                                   : geluInSteps(values, x.dtype()));
  };
  return problem;
}

} // namespace tenon::tool
