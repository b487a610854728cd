// SPDX-License-Identifier: Apache-2.0
#include "GpuCases.h"

#include "Format.h"

#include "tenon/base/Error.h"
#include "tenon/verify/Values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

namespace tenon::tool {
namespace {

constexpr int64_t yardstickColumns = 8192;

const Kernel copyKernel("copy(x, y, rows=1, cols)", [](View x, View y, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  y.store({i * rows, j * cols}, x.load({i * rows, j * cols}, {rows, cols}));
});

const Kernel readKernel("read(x, y, cols)", [](View x, View y, Param cols) {
  Index i = grid(x.size(0));
  y.store({i}, reshape(max(x.load({i, 0}, {1, cols}).to(f32), 1), {1}).to(y.dtype()));
});

zoo::Entry makeYardstick(bool readsOnly) {
  auto makeProblem = [readsOnly](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
    int64_t rows = shape[0], cols = shape[1];
    Tensor x = Tensor::empty(dtype, shape);
    x.fillRandom(seed, -2, 2);
    Problem problem;
    problem.label = shapeText(shape);
    problem.arguments = {x, readsOnly ? Tensor::zeros(dtype, {rows}) : Tensor::zeros(dtype, shape)};
    problem.outputs = {1};
    problem.params = {{"cols", cols}};
    problem.reference = problem.plain = [=](Arguments &arguments) {
      std::vector<double> values = valuesOf<double>(arguments[0].tensor());
      if (readsOnly) {
        for (int64_t row = 0; row < rows; ++row)
          values[row] = *std::max_element(values.begin() + row * cols, values.begin() + (row + 1) * cols);
        values.resize(static_cast<size_t>(rows));
      }
      setValues(arguments[1].tensor(), values);
    };
    double elements = static_cast<double>(rows) * cols;
    problem.bytes = (readsOnly ? elements + rows : 2 * elements) * sizeOf(dtype);
    return problem;
  };
  return {.name = readsOnly ? "read" : "copy",
          .summary = readsOnly ? "the maximum of each row" : "y = x",
          .kernel = readsOnly ? readKernel : copyKernel,
          .dtypes = {bf16},
          .dimensions = {"rows", "cols"},
          .demoShape = {4096, yardstickColumns},
          .testShapes = {},
          .makeProblem = makeProblem,
          .plainLoop = {}};
}

//===--- Tilings --------------------------------------------------------------------------------------------------===//
// 16 bytes, eight elements of bf16, are what one thread moves at once.

Tiling tile(int64_t rows, int64_t cols, int warps, int cluster = 0) {
  return {{{"rows", rows}, {"cols", cols}}, warps, cluster, /*stages=*/0};
}

/// Kernels that work element by element, with the one to use first.
std::vector<Tiling> elementwiseTilings(const Tiling &first) {
  std::vector<Tiling> tilings = {first};
  for (const Tiling &other : {tile(1, 4096, 4), tile(1, 4096, 8), tile(1, 1024, 4), tile(1, 2048, 2), tile(1, 2048, 4),
                              tile(1, 2048, 8), tile(1, 4096, 16), tile(1, 8192, 4), tile(1, 8192, 8),
                              tile(1, 8192, 16), tile(2, 2048, 8), tile(4, 1024, 8), tile(2, 4096, 8),
                              tile(4, 2048, 16), tile(1, 4096, 0)})
    if (other.text() != first.text())
      tilings.push_back(other);
  return tilings;
}

std::vector<Tiling> readTilings() {
  std::vector<Tiling> tilings;
  for (int warps : {8, 4, 16, 32})
    tilings.push_back({{{"cols", yardstickColumns}}, warps, 1, 0});
  return tilings;
}

/// Kernels whose tiles span the row.
std::vector<Tiling> rowTilings(int64_t cols) {
  if (cols <= 512)
    return {tile(4, 512, 4), tile(8, 512, 4), tile(2, 512, 4), tile(16, 512, 4), tile(4, 512, 8),
          tile(8, 512, 8), tile(16, 512, 8), tile(2, 512, 2), tile(1, 512, 1), tile(4, 512, 0)};
  if (cols <= 4096)
    return {tile(2, 4096, 8), tile(1, 4096, 8), tile(1, 4096, 4), tile(1, 4096, 16), tile(2, 4096, 16),
          tile(4, 4096, 16), tile(1, 4096, 0)};
  if (cols <= 8192)
    return {tile(1, 8192, 8, 1), tile(1, 8192, 16, 1), tile(1, 8192, 4, 1), tile(1, 8192, 32, 1),
          tile(2, 8192, 16, 1), tile(2, 8192, 32, 1), tile(1, 8192, 8, 2), tile(1, 8192, 0, 0)};
  if (cols <= 32768)
    return {tile(1, 32768, 16, 1), tile(1, 32768, 16, 2), tile(1, 32768, 32, 1), tile(1, 32768, 32, 2),
          tile(1, 32768, 8, 4), tile(1, 32768, 4, 4), tile(1, 32768, 16, 4), tile(1, 32768, 8, 2), tile(1, 32768, 0, 0)};
  if (cols <= 131072)
    return {tile(1, 131072, 8, 8), tile(1, 131072, 16, 8), tile(1, 131072, 16, 4), tile(1, 131072, 4, 16), tile(1, 131072, 32, 8),
          tile(1, 131072, 8, 16), tile(1, 131072, 16, 16), tile(1, 131072, 0, 0)};
  return {tile(1, 262144, 8, 16), tile(1, 262144, 16, 16), tile(1, 262144, 32, 8), tile(1, 262144, 32, 16),
          tile(1, 262144, 16, 8), tile(1, 262144, 0, 0)};
}

/// Kernels that walk along the row, with a slot for each thread and its accesses.
Tiling walk(int64_t rows, int64_t cols, int warps) {
  Tiling tiling = tile(rows, cols, warps);
  tiling.params["slots"] = warps * 32 / rows;
  tiling.params["run"] = 8;
  return tiling;
}

std::vector<Tiling> walkTilings() {
  return {walk(1, 4096, 8), walk(1, 8192, 8), walk(1, 2048, 4), walk(1, 4096, 4), walk(1, 8192, 4),
          walk(1, 4096, 2), walk(1, 2048, 2), walk(1, 16384, 8), walk(1, 2048, 1), walk(1, 1024, 1),
          walk(1, 8192, 16), walk(1, 16384, 16), tile(1, 4096, 4)};
}

Tiling heads(int64_t count, int64_t half, int warps) { return {{{"heads", count}, {"half", half}}, warps, 0, 0}; }

std::vector<Tiling> headTilings(int64_t half) {
  return {heads(16, half, 4), heads(32, half, 8), heads(8, half, 4), heads(16, half, 8), heads(32, half, 4),
          heads(64, half, 8), heads(64, half, 16), heads(32, half, 0)};
}

GpuCase makeCase(const zoo::Entry &entry, std::vector<int64_t> shape, std::vector<Tiling> tilings,
                 std::vector<std::string> peers, double bandwidthGoal, double peerGoal) {
  GpuCase result;
  result.entry = &entry;
  result.shape = std::move(shape);
  result.tiling = tilings.front();
  result.alternatives.assign(tilings.begin() + 1, tilings.end());
  result.peers = std::move(peers);
  result.bandwidthGoal = bandwidthGoal;
  result.peerGoal = peerGoal;
  return result;
}

} // namespace

std::string Tiling::text() const {
  std::string text = paramsText(params);
  text += warps ? fmt::format(", {} warp{}", warps, warps == 1 ? "" : "s") : ", warps chosen";
  if (cluster > 1)
    text += fmt::format(", cluster of {}", cluster);
  if (stages)
    text += fmt::format(", {} stage{}", stages, stages == 1 ? "" : "s");
  if (split > 1)
    text += fmt::format(", loops split in {}", split);
  if (tail)
    text += ", last instances shared";
  if (pingPong)
    text += ", ping-pong";
  if (!without.empty())
    text += fmt::format(", without {}", without);
  return text;
}

void Tiling::applyTo(LaunchOptions &options) const {
  for (const auto &[name, value] : params)
    options.params[name] = value;
  options.compile.warps = warps;
  options.compile.cluster = cluster;
  options.compile.stages = stages;
  options.compile.split = split;
  options.compile.shareTail = tail != 0;
  options.compile.pingPong = pingPong != 0;
  options.compile.without = without;
}

Tiling parseTiling(const std::string &text) {
  Tiling tiling;
  const std::map<std::string, int *> settings = {
      {"warps", &tiling.warps}, {"cluster", &tiling.cluster}, {"stages", &tiling.stages}, {"split", &tiling.split},
      {"tail", &tiling.tail},   {"pingpong", &tiling.pingPong}};
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    size_t equals = part.find('=');
    if (part.substr(0, equals) == "without" && equals != std::string::npos) {
      tiling.without = part.substr(equals + 1);
      std::replace(tiling.without.begin(), tiling.without.end(), '+', ',');
      continue;
    }
    int64_t value = 0;
    const char *first = part.data() + (equals == std::string::npos ? part.size() : equals + 1);
    const char *last = part.data() + part.size();
    auto [end, error] = std::from_chars(first, last, value);
    if (equals == 0 || first == last || end != last || error != std::errc())
      throw Error("'" + text + "' is no tiling: name numbers, for example bm=128,bn=256,bk=64,warps=8,stages=4");
    std::string name = part.substr(0, equals);
    auto setting = settings.find(name);
    if (setting == settings.end())
      tiling.params[name] = value;
    else
      *setting->second = static_cast<int>(value);
  }
  return tiling;
}

std::string GpuCase::name() const {
  return entry->name + " " + shapeText(shape) + (graphLaunches ? " graph" : "");
}

Problem GpuCase::problem(int64_t rows) const {
  std::vector<int64_t> sizes = shape;
  sizes[0] = rows;
  return entry->makeProblem(sizes, dtype(), 1);
}

LaunchOptions GpuCase::launchOptions(const Tiling &chosen) const {
  LaunchOptions options;
  options.target = Target::cuda;
  options.params = problem(1).params; // such as which formula it is
  chosen.applyTo(options);
  return options;
}

int64_t GpuCase::elementsPerRow() const {
  int64_t product = 1;
  for (size_t d = 1; d < shape.size(); ++d)
    product *= shape[d];
  return product;
}

double GpuCase::bytes() const {
  // Some for each row, and some (weights) once: two small problems tell.
  double one = problem(1).bytes, two = problem(2).bytes;
  return one + static_cast<double>(shape[0] - 1) * (two - one);
}

const zoo::Entry &copyEntry() {
  static const zoo::Entry entry = makeYardstick(/*readsOnly=*/false);
  return entry;
}

const zoo::Entry &readEntry() {
  static const zoo::Entry entry = makeYardstick(/*readsOnly=*/true);
  return entry;
}

GpuCase yardstick(bool readsOnly, double bytes) {
  double perRow = (readsOnly ? 2.0 : 4.0) * yardstickColumns;
  int64_t rows = std::max<int64_t>(1, static_cast<int64_t>(bytes / perRow));
  if (readsOnly) {
    GpuCase result = makeCase(readEntry(), {rows, yardstickColumns}, readTilings(), {"read"}, 0, 0);
    result.readsOnly = true;
    return result;
  }
  // The fastest copy is the yardstick.
  return makeCase(copyEntry(), {rows, yardstickColumns}, elementwiseTilings(tile(1, 2048, 8)), {"copy"}, 0, 0);
}

std::vector<GpuCase> gpuCases(bool quick) {
  constexpr int64_t rows = 16384, cols = 8192, total = rows * cols;
  const std::vector<std::string> frameworks = {"copy", "torch_eager", "torch_compile", "jax"};
  const std::vector<std::string> withTriton = {"copy", "torch_eager", "torch_compile", "triton", "jax"};
  std::vector<GpuCase> cases;
  cases.push_back(yardstick(/*readsOnly=*/false, 4.0 * total));
  cases.push_back(yardstick(/*readsOnly=*/true, 2.0 * total));
  for (std::string_view name : {"gelu_tanh", "swiglu", "bias_gelu", "dropout"}) {
    Tiling tiling = tile(1, 2048, 2);
    if (name == "swiglu")
      tiling = tile(1, 2048, 4); // two inputs: half the elements a thread for as many loads under way
    else if (name == "dropout")
      tiling = tile(1, 8192, 4); // much to compute once for all elements of a thread
    cases.push_back(makeCase(zoo::find(std::string(name)), {rows, cols}, elementwiseTilings(tiling),
                             name == "gelu_tanh" ? withTriton : frameworks, 0.95, 1));
  }
  cases.back().sameRows = false; // dropout draws by position
  for (const char *name : {"rms_norm", "layer_norm"})
    cases.push_back(makeCase(zoo::find(name), {rows, cols}, rowTilings(cols), frameworks, 0.95, 1));
  cases.push_back(makeCase(zoo::find("rotary"), {rows, 64, 128}, headTilings(64), frameworks, 0.95, 1));
  for (int64_t length : {512, 4096, 8192, 32768, 131072, 262144})
    cases.push_back(makeCase(zoo::find("softmax"), {total / length, length}, rowTilings(length), withTriton, 0.93, 0));
  cases.push_back(makeCase(zoo::find("cross_entropy"), {4096, 128256}, walkTilings(),
                           {"read", "torch_eager", "torch_compile", "jax"}, 0.9, 0));
  cases.back().readsOnly = true;
  if (quick)
    for (GpuCase &one : cases)
      one.shape[0] = std::max<int64_t>(1, one.shape[0] / 16);
  for (std::string_view name : {"gelu_tanh", "swiglu", "softmax", "rms_norm", "layer_norm"})
    for (int64_t few : {1, 8, 64}) {
      // Few rows: each is spread over more multiprocessors and more threads, of which none has much to do.
      bool byRow = name != "gelu_tanh" && name != "swiglu";
      std::vector<Tiling> tilings = byRow ? rowTilings(cols) : elementwiseTilings(tile(1, 1024, 8));
      if (byRow)
        tilings.insert(tilings.begin(), tile(1, cols, 4, 4));
      GpuCase one = makeCase(zoo::find(std::string(name)), {few, cols}, tilings, {"torch_eager", "torch_compile"}, 0, 1);
      one.graphLaunches = 50;
      cases.push_back(std::move(one));
    }
  return cases;
}

} // namespace tenon::tool
