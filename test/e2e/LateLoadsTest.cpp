// SPDX-License-Identifier: Apache-2.0
//
// Large tiles that are needed with the sums of dots on warpgroups: residuals, gates and the like, which come panel by
// panel. In the simulator, in several orders of the threads; the result is that of loads that the threads make, bit by
// bit. And as PTX: a product with such an epilogue spills nothing at the tiles that one would choose.
#include "PtxSupport.h"
#include "SimSupport.h"

#include <cstring>
#include <optional>

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *inPanels = "where threads read it panel by panel";

struct Sums {
  View x, w;
  Index i, j;
  int64_t bm, bn, bk;
  Tile operator()() const {
    Tile acc = zeros(f32, {bm, bn});
    for (Index k : range(0, x.size(1), bk))
      acc = dot(x.load({i * bm, k}, {bm, bk}), w.load({k, j * bn}, {bk, bn}), acc);
    return acc;
  }
  Tile part(View of) const { return of.load({i * bm, j * bn}, {bm, bn}).to(f32); }
};

const Kernel residual("residual(x, w, r, y, bm=64, bn=64, bk=64)",
                      [](View x, View w, View r, View y, Param bm, Param bn, Param bk) {
                        auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                        Sums sums{x, w, i, j, bm, bn, bk};
                        Tile acc = sums();
                        y.store({i * bm, j * bn}, (acc + sums.part(r)).to(y.dtype()));
                      });

/// Of two types: the panels of one have half as many columns.
const Kernel gated("gated(x, w, gate, r, y, bm=64, bn=64, bk=64)",
                   [](View x, View w, View gate, View r, View y, Param bm, Param bn, Param bk) {
                     auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                     Sums sums{x, w, i, j, bm, bn, bk};
                     Tile acc = sums();
                     y.store({i * bm, j * bn}, (sums.part(r) + sigmoid(sums.part(gate)) * acc).to(y.dtype()));
                   });

const Kernel ofThree("of_three(x, w, a, b, c, y, bm=64, bn=64, bk=64)",
                     [](View x, View w, View a, View b, View c, View y, Param bm, Param bn, Param bk) {
                       auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                       Sums sums{x, w, i, j, bm, bn, bk};
                       Tile acc = sums();
                       y.store({i * bm, j * bn}, (acc * sums.part(a) + sums.part(b) - sums.part(c)).to(y.dtype()));
                     });

/// What the second store needs is loaded first; each store is made of all panels before the other begins.
const Kernel twoStores("two_stores(x, w, a, b, y, z, bm=64, bn=64, bk=64)",
                       [](View x, View w, View a, View b, View y, View z, Param bm, Param bn, Param bk) {
                         auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                         Sums sums{x, w, i, j, bm, bn, bk};
                         Tile acc = sums(), second = sums.part(b), first = sums.part(a);
                         y.store({i * bm, j * bn}, (acc + first).to(y.dtype()));
                         z.store({i * bm, j * bn}, (acc * second).to(z.dtype()));
                       });

/// Sums over columns, of which each thread needs all panels; and a product of low rank behind the loop, whose operand
/// comes when the residual is asked for already.
const Kernel lowRank("low_rank(x, w, a, b, r, y, s, bm=64, bn=64, bk=64, rank=16)",
                     [](View x, View w, View a, View b, View r, View y, View s, Param bm, Param bn, Param bk,
                        Param rank) {
                       auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                       Tile acc = zeros(f32, {bm, bn}), low = zeros(f32, {bm, rank});
                       for (Index k : range(0, x.size(1), bk)) {
                         Tile t = x.load({i * bm, k}, {bm, bk});
                         acc = dot(t, w.load({k, j * bn}, {bk, bn}), acc);
                         low = dot(t, a.load({k, 0}, {bk, rank}), low);
                       }
                       Tile rest = r.load({i * bm, j * bn}, {bm, bn}).to(f32);
                       acc = dot(low.to(x.dtype()), b.load({0, j * bn}, {rank, bn}), acc) + rest;
                       s.store({i * bm, j}, sum(acc, 1));
                       y.store({i * bm, j * bn}, acc.to(y.dtype()));
                     });

/// Sums that are divided by the largest of their row between two such loads.
const Kernel divided("divided(x, w, gate, r, y, bm=64, bn=64, bk=64)",
                     [](View x, View w, View gate, View r, View y, Param bm, Param bn, Param bk) {
                       auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                       Sums sums{x, w, i, j, bm, bn, bk};
                       Tile acc = sums(), g = sums.part(gate);
                       Tile scaled = acc / (max(abs(acc), 1) + 1);
                       y.store({i * bm, j * bn}, (scaled * g + sums.part(r)).to(y.dtype()));
                     });

/// In a loop around the loop of dots; what is needed behind the second one is loaded behind the first.
const Kernel twoLoops("two_loops(x, w, r, y, bm=64, bn=64, bk=64)",
                      [](View x, View w, View r, View y, Param bm, Param bn, Param bk) {
                        Index i = grid(cdiv(y.size(0), bm));
                        for (Index j : range(0, cdiv(y.size(1), bn))) {
                          Sums sums{x, w, i, j, bm, bn, bk};
                          Tile first = sums(), late = sums.part(r), second = sums();
                          y.store({i * bm, j * bn}, (first + second * late).to(y.dtype()));
                        }
                      });

/// Where memory says how long an instance takes, one thread loads everything.
const Kernel ragged("ragged(x, w, lengths, r, y, bm=64, bn=64, bk=64)",
                    [](View x, View w, View lengths, View r, View y, Param bm, Param bn, Param bk) {
                      auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                      Tile acc = zeros(f32, {bm, bn});
                      for (Index k : range(0, lengths.at({i}), bk))
                        acc = dot(x.load({i * bm, k}, {bm, bk}), w.load({k, j * bn}, {bk, bn}), acc);
                      y.store({i * bm, j * bn}, (acc + r.load({i * bm, j * bn}, {bm, bn}).to(f32)).to(y.dtype()));
                    });

Tensor matrix(DType dtype, int64_t rows, int64_t columns, unsigned seed) {
  return zoo::randomTensor(dtype, {rows, columns}, seed, -2, 2);
}

/// The operands, then tiles of the result's shape in these types, the last of which is the result.
Arguments argumentsOf(int64_t m, int64_t n, int64_t k, std::vector<DType> types) {
  Arguments arguments = {matrix(bf16, m, k, 1), matrix(bf16, k, n, 2)};
  for (DType type : types)
    arguments.push_back(matrix(type, m, n, 3 + arguments.size()));
  return arguments;
}

/// `smaller`: other tiles, where those would need too much shared memory without panels.
void expectSame(const Kernel &kernel, const Arguments &arguments, LaunchOptions options, bool isLate = true,
                size_t outputs = 1, std::optional<LaunchOptions> smaller = {}) {
  auto run = [&](const LaunchOptions &with) {
    std::vector<std::vector<std::byte>> all;
    launch(kernel, arguments, with);
    for (size_t i = arguments.size() - outputs; i < arguments.size(); ++i)
      all.push_back(bytesOf({arguments[i].tensor()}));
    return all;
  };
  std::string remarks = remarksOf(kernel, arguments, options);
  EXPECT_EQ(remarks.find(inPanels) != std::string::npos, isLate) << kernel.name() << "\n" << remarks;
  LaunchOptions plain = smaller.value_or(options);
  plain.compile.without = "late-loads";
  EXPECT_EQ(remarksOf(kernel, arguments, plain).find(inPanels), std::string::npos);
  auto expected = run(plain);
  for (int seed : {0, 1, 5}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(run(options), expected) << kernel.name() << ", seed " << seed;
  }
}

TEST(LateLoads, OneTile) {
  for (int64_t k : {64, 200}) // one iteration, several
    expectSame(residual, argumentsOf(136, 200, k, {bf16, bf16}), onSimulator({}, 4));
  expectSame(residual, argumentsOf(136, 328, 72, {f32, bf16}), onSimulator({{"bm", 128}, {"bn", 256}}, 8));
  expectSame(residual, argumentsOf(72, 328, 72, {bf16, f32}), onSimulator({{"bn", 256}}, 8)); // two groups of columns
  expectSame(residual, argumentsOf(264, 136, 72, {bf16, bf16}), onSimulator({{"bm", 256}, {"bn", 128}}, 8), true, 1,
             onSimulator({}, 4));
  // rows of 400 bytes are no panels
  expectSame(residual, argumentsOf(136, 400, 72, {bf16, bf16}), onSimulator({{"bm", 128}, {"bn", 200}}, 8), false);
}

TEST(LateLoads, SeveralTiles) {
  expectSame(gated, argumentsOf(136, 136, 136, {bf16, f32, bf16}), onSimulator({{"bm", 128}, {"bn", 128}}, 8));
  expectSame(ofThree, argumentsOf(136, 264, 72, {f16, f32, bf16, bf16}), onSimulator({{"bm", 128}, {"bn", 256}}, 8));
  expectSame(twoStores, argumentsOf(136, 264, 72, {bf16, bf16, bf16, bf16}), onSimulator({{"bm", 128}, {"bn", 256}}, 8),
             true, 2, onSimulator({}, 4));
}

TEST(LateLoads, AReductionInBetween) {
  expectSame(divided, argumentsOf(136, 264, 72, {bf16, bf16, bf16}), onSimulator({{"bm", 128}, {"bn", 256}}, 8));
  expectSame(divided, argumentsOf(72, 136, 72, {f32, f32, bf16}), onSimulator({{"bn", 128}}, 4));
  expectSame(divided, argumentsOf(200, 136, 72, {bf16, bf16, bf16}), onSimulator({{"bm", 192}, {"bn", 128}}, 12));
}

TEST(LateLoads, BesideOtherTransfers) {
  Arguments arguments = {matrix(bf16, 72, 136, 1), matrix(bf16, 136, 264, 2), matrix(bf16, 136, 16, 3),
                         matrix(bf16, 16, 264, 4), matrix(bf16, 72, 264, 5),  matrix(bf16, 72, 264, 6),
                         matrix(f32, 72, 2, 7)};
  expectSame(lowRank, arguments, onSimulator({{"bn", 256}}, 8), true, 2);
  expectSame(twoLoops, argumentsOf(72, 264, 72, {bf16, bf16}), onSimulator({{"bn", 256}}, 4));
}

TEST(LateLoads, OtherInstances) {
  LaunchOptions options = onSimulator({{"bm", 128}, {"bn", 128}}, 8);
  options.compile.cluster = 2;
  expectSame(residual, argumentsOf(136, 264, 136, {bf16, bf16}), options);
  // Of three columns of tiles the cluster's second block has none in the end: it stages and does not store.
  options.params["bn"] = 256;
  expectSame(gated, argumentsOf(136, 520, 136, {bf16, bf16, bf16}), options);
  Arguments arguments = argumentsOf(200, 264, 200, {bf16, bf16});
  Tensor lengths = Tensor::zeros(i64, {4});
  for (int64_t i = 0; i < 4; ++i)
    lengths.setInt({i}, 200 * ((i * 3 + 2) % 4) / 3);
  arguments.insert(arguments.begin() + 2, lengths);
  expectSame(ragged, arguments, onSimulator({{"bn", 128}}, 4));
}

/// Two warpgroups that take program instances in turns, an even and an odd number of them.
TEST(LateLoads, InTurns) {
  LaunchOptions options = onSimulator({{"bm", 64}, {"bn", 128}}, 8);
  options.compile.pingPong = true;
  for (int64_t k : {64, 200})
    expectSame(residual, argumentsOf(200, 264, k, {bf16, bf16}), options);
  expectSame(gated, argumentsOf(136, 264, 136, {bf16, f32, bf16}), options);
  expectSame(divided, argumentsOf(328, 264, 136, {bf16, f32, f32}), options);
  options.params = {{"bm", 128}, {"bn", 192}};
  expectSame(residual, argumentsOf(392, 392, 72, {f32, bf16}), options, true, 1, onSimulator({}, 4));
}

/// Sums that are added to what is there: one argument, and the same tensor twice.
TEST(LateLoads, InPlace) {
  const Kernel accumulate("accumulate(x, w, y, bm=64, bn=64, bk=64)",
                          [](View x, View w, View y, Param bm, Param bn, Param bk) {
                            auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                            Sums sums{x, w, i, j, bm, bn, bk};
                            Tile acc = sums();
                            y.store({i * bm, j * bn}, (acc + sums.part(y)).to(y.dtype()));
                          });
  for (const char *part : {inPanels, "store is made by the tensor memory accelerator"})
    for (LaunchOptions options : {onSimulator({}, 4), onSimulator({{"bm", 128}, {"bn", 256}}, 8)}) {
      Arguments once = argumentsOf(136, 264, 136, {bf16}), apart = argumentsOf(136, 264, 136, {bf16, bf16}),
                twice = once;
      twice.push_back(twice.back().tensor());
      apart[2] = once[2].tensor().clone();
      launch(residual, apart, options);
      std::vector<std::byte> before = bytesOf({once[2].tensor()}), expected = bytesOf({apart[3].tensor()});
      auto run = [&](const Kernel &kernel, const Arguments &arguments) {
        EXPECT_NE(remarksOf(kernel, arguments, options).find(part), std::string::npos) << kernel.name() << ": " << part;
        for (int seed : {0, 3}) {
          SimulatorSeed set(seed);
          std::memcpy(once[2].tensor().data(), before.data(), before.size());
          launch(kernel, arguments, options);
          EXPECT_EQ(bytesOf({once[2].tensor()}), expected) << kernel.name();
        }
      };
      run(accumulate, once);
      run(residual, twice);
    }
}

/// What is stored where something else is loaded from, or what the next iteration loads, is not.
TEST(LateLoads, NotQuiteInPlace) {
  const Kernel elsewhere("elsewhere(x, w, y, z, bm=64, bn=64, bk=64)",
                         [](View x, View w, View y, View z, Param bm, Param bn, Param bk) {
                           auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                           Sums sums{x, w, i, j, bm, bn, bk};
                           Tile acc = sums();
                           y.store({i * bm, j * bn}, (acc + z.load({j * bn, i * bm}, {bn, bm}).to(f32)).to(y.dtype()));
                         });
  const Kernel turned("turned(x, w, y, bm=64, bn=64, bk=64)", [](View x, View w, View y, Param bm, Param bn, Param bk) {
    auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
    Sums sums{x, w, i, j, bm, bn, bk};
    Tile acc = sums();
    y.store({i * bm, j * bn}, (acc + transpose(sums.part(y))).to(y.dtype()));
  });
  // Another instance may store the same window before it passes a turn on.
  const Kernel inOrder("in_order(x, w, turns, y, bm=64, bn=64, bk=64)",
                       [](View x, View w, View turns, View y, Param bm, Param bn, Param bk) {
                         auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                         Sums sums{x, w, i, j, bm, bn, bk};
                         Tile acc = sums();
                         turns.atomic_add({zeros(i32, {1})}, full(i32, {1}, 1));
                         y.store({i * bm, j * bn}, (acc + sums.part(y)).to(y.dtype()));
                       });
  LaunchOptions options = onSimulator({}, 4);
  Arguments arguments = argumentsOf(136, 136, 136, {bf16});
  EXPECT_EQ(remarksOf(turned, arguments, options).find(inPanels), std::string::npos);
  Arguments taken = arguments;
  taken.insert(taken.begin() + 2, Tensor::zeros(i32, {1}));
  EXPECT_EQ(remarksOf(inOrder, taken, options).find(inPanels), std::string::npos);
  arguments.push_back(arguments.back().tensor());
  EXPECT_EQ(remarksOf(elsewhere, arguments, options).find(inPanels), std::string::npos);
  EXPECT_EQ(remarksOf(twoLoops, arguments, options).find(inPanels), std::string::npos);
  arguments[3] = arguments[2].tensor().slice(0, 8, 128); // some of it
  EXPECT_EQ(remarksOf(residual, arguments, options).find(inPanels), std::string::npos);
}

/// Where they cannot be: a loop that is split, rows that begin anywhere.
TEST(LateLoads, OthersAreTheThreads) {
  LaunchOptions options = onSimulator({}, 4);
  Arguments arguments = argumentsOf(72, 136, 136, {bf16, bf16});
  arguments[2] = matrix(bf16, 72, 144, 3).slice(1, 3, 136);
  expectSame(residual, arguments, options, false);
  options.compile.split = 2;
  expectSame(residual, argumentsOf(72, 136, 136, {bf16, bf16}), options, false);
}

TEST(LateLoads, NothingIsSpilled) {
  auto checkOne = [](const Kernel &kernel, const Arguments &arguments, int64_t bm, int64_t bn, auto set) {
    LaunchOptions options;
    options.params = {{"bm", bm}, {"bn", bn}};
    set(options.compile);
    std::string ptx = emit(kernel, arguments, "ptx", options);
    SCOPED_TRACE(kernel.name() + " " + std::to_string(bm) + " x " + std::to_string(bn));
    EXPECT_GT(count(ptx, "wgmma.mma_async"), 0u);
    expectAssembles(ptx);
  };
  auto check = [&](const Kernel &kernel, const Arguments &arguments) {
    for (auto [bm, bn] : {std::pair<int64_t, int64_t>{128, 128}, {128, 256}, {64, 256}, {256, 128}})
      checkOne(kernel, arguments, bm, bn, [](CompileOptions &) {});
  };
  check(residual, argumentsOf(256, 512, 256, {bf16, bf16}));
  check(residual, argumentsOf(256, 512, 256, {f32, f32}));
  check(gated, argumentsOf(256, 512, 256, {bf16, bf16, bf16}));
  check(divided, argumentsOf(256, 512, 256, {bf16, bf16, bf16}));
  check(ofThree, argumentsOf(256, 512, 256, {bf16, bf16, bf16, bf16}));
  Arguments ofTwo = argumentsOf(256, 512, 256, {bf16, bf16, bf16}), twice = argumentsOf(256, 512, 256, {f32});
  twice.push_back(twice.back().tensor());
  checkOne(gated, ofTwo, 128, 256, [](CompileOptions &options) { options.cluster = 2; });
  checkOne(residual, twice, 128, 256, [](CompileOptions &) {});
  auto inTurns = [](CompileOptions &options) { options.pingPong = true, options.warps = 8; };
  checkOne(residual, argumentsOf(256, 512, 256, {bf16, bf16}), 128, 192, inTurns);
  checkOne(gated, ofTwo, 64, 256, inTurns);
}

} // namespace
