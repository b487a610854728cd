// SPDX-License-Identifier: Apache-2.0
//
// Wrong programs are refused while they are traced, in one sentence with the file and line of the mistake, and tracing
// works again afterwards.
#include "LangSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

unsigned mistakeLine;
/// Marks the line it stands on as the one the error must name.
#define HERE (mistakeLine = __LINE__)

/// Launches a kernel over an f32 vector x, an i32 vector y and an f32 matrix m; checks the sentence and its place.
void expectMistake(const std::function<void(View x, View y, View m)> &body, std::initializer_list<std::string> parts) {
  Tensor x = Tensor::zeros(f32, {8}), y = Tensor::zeros(i32, {8}), m = Tensor::zeros(f32, {4, 4});
  Kernel kernel("mistake(x, y, m)", [&](View a, View b, View c) { body(a, b, c); });
  LaunchOptions options;
  options.target = Target::interpreter; // nothing is compiled: the trace is the same for every target
  mistakeLine = 0;
  std::string text = errorOf([&] { launch(kernel, {x, y, m}, options); });
  expectParts(text, parts);
  EXPECT_EQ(text.find("internal error"), std::string::npos) << text;
  std::string place = "LangTraceErrorTest.cpp:" + std::to_string(mistakeLine) + ": ";
  EXPECT_NE(text.find(place), std::string::npos) << "\"" << place << "\" is not in: " << text;
  // The library still works.
  Kernel right("right(x)", [](View v) {
    Tile t = v.load({0}, {8});
    for (Index k : range(3))
      t = t + k.to(f32);
    v.store({0}, t);
  });
  x.fill(1);
  launch(right, {x}, options);
  EXPECT_EQ(x.get({7}), 4);
}

TEST(TraceErrors, ShapeMismatch) {
  expectMistake([](View x, View, View) {
    Tile a = x.load({0}, {4}), b = x.load({0}, {5});
    HERE; Tile c = a + b;
  }, {"shape mismatch", "[4]", "[5]", "do not broadcast"});
  expectMistake([](View x, View, View) { HERE; where(x.load({0}, {4}) > 0, zeros(f32, {3}), 1); },
                {"shape mismatch", "[4]", "[3]"});
  expectMistake([](View x, View, View) { HERE; broadcast(x.load({0}, {4}), {2, 3}); },
                {"shape mismatch", "[4]", "[2, 3]"});
  expectMistake([](View x, View, View) { HERE; broadcast(x.load({0}, {4}), {1}); }, {"shape mismatch", "[4]", "[1]"});
  expectMistake([](View x, View, View) { HERE; reshape(x.load({0}, {4}), {3, 2}); },
                {"shape mismatch", "[4]", "4 elements", "[3, 2]"});
  expectMistake([](View x, View, View m) { HERE; dot(m.load({0, 0}, {2, 3}), m.load({0, 0}, {4, 2})); },
                {"shape mismatch", "dot of [2, 3] and [4, 2]; it takes M x K and K x N"});
  expectMistake([](View x, View, View m) { HERE; dot(x.load({0}, {2}), m.load({0, 0}, {4, 2})); },
                {"shape mismatch", "dot of [2] and [4, 2]"});
  expectMistake([](View x, View, View) { HERE; concat({x.load({0}, {2}), reshape(x.load({0}, {2}), {1, 2})}, 0); },
                {"shape mismatch", "concat()", "[2]", "[1, 2]"});
}

TEST(TraceErrors, TypeMismatch) {
  expectMistake([](View x, View y, View) { HERE; Tile t = x.load({0}, {4}) + y.load({0}, {4}); },
                {"type mismatch", "f32", "i32", ".to()"});
  expectMistake([](View x, View, View) {
    Tile wide = x.load({0}, {4}).to(f64);
    HERE; wide * x.load({0}, {4});
  }, {"type mismatch", "f64", "f32", "a tile made of a Scalar"});
  expectMistake([](View x, View, View) {
    Index i = grid(2);
    HERE; x.load({0}, {4}) * i;
  }, {"type mismatch", "f32", "an index", ".to(f32)"});
  expectMistake([](View x, View y, View) { HERE; concat({x.load({0}, {4}), y.load({0}, {4})}, 0); },
                {"type mismatch", "concat()", "f32", "i32"});
  expectMistake([](View x, View y, View) { HERE; where(y.load({0}, {4}), 1.0, x.load({0}, {4})); },
                {"where() needs a boolean condition", "i32"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {4}).bitcast(f64); }, {"bitcast", "f32", "f64"});
  expectMistake([](View, View y, View) { HERE; exp(y.load({0}, {4})); }, {"exp needs a float tile", "i32", ".to(f32)"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {4}) & x.load({0}, {4}); }, {"& is not defined for f32"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {4}) % 2; }, {"% is not defined for f32"});
  expectMistake([](View x, View, View) { HERE; cdiv(x.load({0}, {4}), 2); }, {"cdiv", "f32"});
  expectMistake([](View x, View, View) {
    Tile b = x.load({0}, {4}) > 0;
    HERE; b + b;
  }, {"+ is not defined for bool"});
  expectMistake([](View x, View, View) { HERE; any(x.load({0}, {4}), 0); }, {"any() needs a boolean tile", "f32"});
  expectMistake([](View x, View, View) { HERE; !x.load({0}, {4}); }, {"! needs a boolean tile", "f32"});
  expectMistake([](View x, View, View) { HERE; fma(x.load({0}, {4}).to(f16), 1.0, 2.0); },
                {"fma is not defined for f16"});
}

TEST(TraceErrors, Float8IsForStorage) {
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4}).to(f8e4m3);
    HERE; t + t;
  }, {"no arithmetic on f8e4m3", ".to(f32)"});
  expectMistake([](View x, View, View) { HERE; exp(x.load({0}, {4}).to(f8e5m2)); }, {"no arithmetic on f8e5m2"});
  expectMistake([](View x, View, View) { HERE; max(x.load({0}, {4}).to(f8e5m2), 0); }, {"no arithmetic on f8e5m2"});
  expectMistake([](View x, View, View) { HERE; Tile t = x.load({0}, {4}).to(f8e5m2) < 1.0; },
                {"no arithmetic on f8e5m2"});
}

TEST(TraceErrors, Literals) {
  expectMistake([](View, View y, View) { HERE; y.load({0}, {4}) + 1.5; }, {"the number 1.5", "i32", ".to(f32)"});
  expectMistake([](View, View y, View) { HERE; y.load({0}, {4}).to(i8) + 128; }, {"the number 128 does not fit i8"});
  expectMistake([](View, View y, View) { HERE; y.load({0}, {4}).to(u8) + -1; }, {"the number -1 does not fit u8"});
  expectMistake([](View, View y, View) { HERE; y.load({0}, {4}) + 0x80000000u; }, {"2147483648 does not fit i32"});
  expectMistake([](View, View y, View) { HERE; y.load({0}, {4}).to(i64) + 0xffffffffffffffffull; },
                {"18446744073709551615 does not fit i64"});
  expectMistake([](View, View y, View) { HERE; y.load({0xffffffffffffffffull}, {4}); },
                {"18446744073709551615", "index"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {4}) + true; }, {"a boolean where", "f32"});
  expectMistake([](View x, View, View) { HERE; (x.load({0}, {4}) > 0) & 2; },
                {"the number 2 where a boolean is expected"});
  expectMistake([](View x, View, View) { HERE; x.load({1.5}, {4}); }, {"an index is an integer", "1.5"});
  expectMistake([](View, View y, View) { HERE; y.load({0}, {4}, -inf); }, {"-inf", "i32", "use a whole number"});
}

TEST(TraceErrors, Shapes) {
  expectMistake([](View x, View, View) { HERE; x.load({0}, {0}); }, {"every dimension of a tile is at least 1", "[0]"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {-4}); }, {"at least 1", "[-4]"});
  expectMistake([](View, View, View) { HERE; zeros(f32, {1, 1, 1, 1, 1, 1}); }, {"at most 5 dimensions", "6"});
  expectMistake([](View x, View, View) { HERE; expand(reshape(x.load({0}, {4}), {1, 1, 1, 1, 4}), 0); },
                {"at most 5 dimensions"});
  expectMistake([](View, View, View) { HERE; zeros(f32, {1025, 1024}); }, {"too large", "[1025, 1024]", "1048576"});
  expectMistake([](View, View, View) { HERE; zeros(f32, {int64_t(1) << 40, int64_t(1) << 40}); }, {"too large"});
  expectMistake([](View, View, View) {
    Tile a = zeros(f32, {2048, 1}), b = zeros(f32, {1, 2048});
    HERE; a + b;
  }, {"too large", "[2048, 2048]"});
  expectMistake([](View, View, View) {
    Tile a = zeros(f32, {2048, 1}) > 0, b = zeros(f32, {1, 2048});
    HERE; where(a, b, b);
  }, {"too large", "[2048, 2048]"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {}); }, {"at least one dimension"});
  expectMistake([](View, View, View m) { HERE; m.load({0, 0}, {4}); },
                {"[4]", "2 dimensions", "one extent per dimension"});
  expectMistake([](View, View, View m) { HERE; m.load({0}, {4, 4}); }, {"2 dimensions", "offsets", "not 1"});
}

TEST(TraceErrors, Dimensions) {
  expectMistake([](View x, View, View) { HERE; sum(x.load({0}, {4}), 1); },
                {"dimension 1 of a tile with 1 dimension: the last one is 0"});
  expectMistake([](View x, View, View) { HERE; max(x.load({0}, {4}), -1); }, {"dimension -1"});
  expectMistake([](View x, View, View) { HERE; expand(x.load({0}, {4}), 2); }, {"dimension 2"});
  expectMistake([](View x, View, View) { HERE; x.size(1); }, {"dimension 1 of a view with 1 dimension: the last"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    HERE; t.size(3);
  }, {"dimension 3"});
  expectMistake([](View, View, View) { HERE; iota(i32, {4, 4}, 2); }, {"dimension 2"});
  expectMistake([](View, View, View m) { HERE; transpose(m.load({0, 0}, {2, 2}), {0, 0}); }, {"names 0 twice"});
  expectMistake([](View, View, View m) { HERE; transpose(m.load({0, 0}, {2, 2}), {0}); },
                {"a permutation of as many", "1"});
  expectMistake([](View, View, View m) { HERE; transpose(m.load({0, 0}, {2, 2}), {0, 2}); }, {"dimension 2"});
  expectMistake([](View x, View, View) { HERE; transpose(x.load({0}, {4})); }, {"needs a matrix", "[4]"});
  expectMistake([](View x, View, View) { HERE; slice(x.load({0}, {4}), 0, 2, 3); },
                {"slice of 3 elements from 2 of a dimension of 4"});
  expectMistake([](View x, View, View) { HERE; slice(x.load({0}, {4}), 0, -1, 2); }, {"slice of 2 elements from -1"});
  expectMistake([](View x, View, View) { HERE; slice(x.load({0}, {4}), 0, 0, 0); }, {"slice of 0 elements"});
  expectMistake([](View x, View, View) { HERE; slice(x.load({0}, {4}), 1, 0, 1); }, {"dimension 1"});
  expectMistake([](View, View, View) { HERE; concat({}, 0); }, {"concat() needs at least one tile"});
  expectMistake([](View x, View, View) { HERE; scalar(x.load({0}, {4})); },
                {"scalar() needs a tile of one element", "[4]"});
}

TEST(TraceErrors, Stores) {
  expectMistake([](View x, View y, View) { HERE; x.store({0}, y.load({0}, {4})); },
                {"type mismatch", "storing i32 into a view of f32", ".to(view.dtype())"});
  expectMistake([](View x, View, View m) { HERE; m.store({0, 0}, x.load({0}, {4})); },
                {"shape mismatch", "[4]", "2 dimensions", "reshape"});
  expectMistake([](View x, View, View) { HERE; x.store({0, 0}, x.load({0}, {4})); }, {"a view with 1 dimension needs", "not 2"});
  expectMistake([](View x, View, View) { HERE; x.gather({x.load({0}, {4})}); },
                {"an index tile has an integer type", "f32"});
  expectMistake([](View, View, View m) { HERE; m.gather({iota(4)}); }, {"as many index tiles, not 1"});
  expectMistake([](View x, View, View) { HERE; x.gather({iota(4)}, iota(4)); }, {"a mask is boolean", "i32"});
  expectMistake([](View x, View, View) { HERE; x.scatter({iota(4)}, iota(4)); }, {"type mismatch", "storing i32"});
  expectMistake([](View x, View, View) { HERE; x.load({x.load({0}, {4})}, {4}); },
                {"an index is an integer scalar", "f32"});
  expectMistake([](View x, View, View) { HERE; x.load({0}, {4}, x.load({0}, {4})); }, {"padding is a scalar", "[4]"});
  Kernel halves("halves(x)", [](View x) { x.atomic_add({iota(4)}, zeros(f16, {4})); });
  Tensor x = Tensor::zeros(f16, {4});
  expectParts(errorOf([&] { launch(halves, {x}); }), {"atomics need elements of 32 or 64 bits", "f16", __FILE__});
}

TEST(TraceErrors, EmptyTile) {
  expectMistake([](View, View, View) {
    Tile nothing;
    HERE; nothing + 1;
  }, {"holds no value yet"});
  expectMistake([](View x, View, View) {
    Tile nothing;
    HERE; x.store({0}, nothing);
  }, {"holds no value yet"});
  expectMistake([](View, View, View) {
    Tile nothing;
    HERE; nothing.shape();
  }, {"holds no value yet"});
  expectMistake([](View, View, View) {
    Tile nothing;
    HERE; sum(nothing, 0);
  }, {"holds no value yet"});
  expectMistake([](View, View, View) {
    Tile nothing;
    HERE; concat({nothing}, 0);
  }, {"holds no value yet"});
}

TEST(TraceErrors, Conditions) {
  expectMistake([](View x, View, View) {
    HERE; if (x.at({0}) > 0)
      x.store({0}, zeros(f32, {1}));
  }, {"a tile cannot be a C++ condition", "where()", "if_()"});
  expectMistake([](View x, View, View) { HERE; if_(x.load({0}, {4}) > 0, [] {}); },
                {"if_() needs a boolean scalar", "any()"});
  expectMistake([](View x, View, View) { HERE; if_(x.at({0}), [] {}); }, {"if_() needs a boolean scalar"});
  expectMistake([](View, View, View) { HERE; if_(2, [] {}); }, {"the number 2 where a boolean is expected"});
  expectMistake([](View x, View, View) { HERE; device_assert(x.load({0}, {4}), "no"); },
                {"device_assert() needs a boolean", "f32"});
}

TEST(TraceErrors, LoopsAndScopes) {
  expectMistake([](View x, View, View) {
    Tile last;
    for (Index k : range(3))
      last = x.load({k}, {4});
    HERE; x.store({0}, last);
  }, {"value used outside its loop or branch", "initial value"});
  expectMistake([](View x, View, View) {
    Tile inside;
    if_(x.size(0) > 3, [&] { inside = x.load({0}, {4}); });
    HERE; inside + 1;
  }, {"value used outside its loop or branch"});
  expectMistake([](View x, View, View) {
    HERE; if_ kept(x.size(0) > 3, [&] { x.store({0}, zeros(f32, {4})); });
    x.store({4}, zeros(f32, {4}));
  }, {"if_() is a statement of its own"});
  expectMistake([](View x, View, View) {
    Tile inside;
    if_(x.size(0) > 3, [&] { inside = x.load({0}, {4}); }).else_([&] { HERE; x.store({0}, inside); });
  }, {"value used outside its loop or branch"});
  expectMistake([](View x, View, View) {
    HERE; for (Index k : range(3)) {
      x.store({k}, zeros(f32, {4}));
      break;
    }
  }, {"break or return out of a traced loop"});
  expectMistake([](View x, View, View) {
    HERE; for (Index k : range(3)) {
      x.store({k}, zeros(f32, {4}));
      return;
    }
  }, {"break or return out of a traced loop"});
  expectMistake([](View x, View, View) { // what follows a break is not the first mistake
    HERE; for (Index k : range(3)) {
      x.store({k}, zeros(f32, {4}));
      break;
    }
    require(true, "");
  }, {"break or return out of a traced loop"});
  expectMistake([](View x, View, View) {
    Tile t = zeros(f32, {1});
    HERE; for (Index k : range(3))
      t = x.load({k}, {4});
  }, {"a variable changes from f32 of shape [1] to f32 of shape [4] across a loop iteration"});
  expectMistake([](View x, View, View) {
    Tile t = zeros(i32, {4});
    HERE; for (Index k : range(3))
      t = x.load({k}, {4});
  }, {"changes from i32 of shape [4] to f32 of shape [4]"});
  expectMistake([](View, View y, View) { // the same bits, but another type
    Tile t = y.load({0}, {4});
    HERE; for (Index k : range(3))
      t = t.to(u32);
  }, {"changes from i32", "to u32"});
  expectMistake([](View x, View, View) {
    Tile t = zeros(f32, {1});
    HERE; if_(x.size(0) > 3, [&] { t = x.load({0}, {4}); });
  }, {"changes from f32 of shape [1]", "across a branch"});
  expectMistake([](View, View, View) { HERE; for (Index k : range(0, 10, 0)) (void)k; },
                {"the step of a loop is at least 1, not 0"});
  expectMistake([](View, View, View) { HERE; for (Index k : range(0, 10, -2)) (void)k; }, {"at least 1, not -2"});
  expectMistake([](View x, View, View) { HERE; for (Index k : range(x.at({0}))) (void)k; },
                {"an index is an integer scalar", "f32"});
}

// What the trace cannot follow from one iteration to the next is refused, not guessed.
TEST(TraceErrors, VariablesThatOutliveAnIteration) {
  expectMistake([](View x, View, View) {
    std::vector<Tile> tiles;
    HERE; for (Index k : range(3))
      tiles.push_back(x.load({k}, {1}));
  }, {"a variable made inside this loop outlives the iteration", "std::vector"});
  expectMistake([](View x, View, View) {
    std::vector<Tile> tiles = {x.load({0}, {1})};
    HERE; for (Index k : range(3)) {
      tiles.reserve(tiles.capacity() + 1); // moves tiles[0]
      x.store({k}, tiles[0]);
      tiles[0] = tiles[0] + 1;
    }
  }, {"a variable made inside this loop outlives the iteration"});
}

// The library's own functions are made of others: the line is the user's all the same.
TEST(TraceErrors, InsideComposedFunctions) {
  expectMistake([](View x, View, View) { HERE; random_bits(1, x.load({0}, {4})); }, {"counter", "tile of integers"});
  expectMistake([](View x, View, View) { HERE; random_uniform(1, x.load({0}, {4})); }, {"counter", "tile of integers"});
  expectMistake([](View, View, View) { HERE; random_bits(1, iota(i64, {4}, 0), {.bits = 8}); }, {"32 or 16", "not 8"});
  expectMistake([](View, View, View) { HERE; random_bits(1, iota(i64, {4}, 0), {.rounds = 6}); }, {"7 to 10 rounds", "not 6"});
  expectMistake([](View x, View, View) { HERE; dropout(x.load({0}, {4}), 0.5, 1, x.load({0}, {4})); },
                {"counter", "tile of integers"});
  expectMistake([](View, View y, View) { HERE; dropout(y.load({0}, {4}), 0.5, 1, iota(4)); }, {"i32"});
  expectMistake([](View, View y, View) { HERE; sigmoid(y.load({0}, {4})); }, {"i32"});
}

TEST(TraceErrors, TopLevelOnly) {
  expectMistake([](View, View, View) {
    grid(2);
    HERE; grid(3);
  }, {"a kernel declares its grid once"});
  expectMistake([](View, View, View) { for (Index k : range(3)) { (void)k; HERE; grid(3); } },
                {"declares its grid outside loops and branches"});
  expectMistake([](View x, View, View) { if_(x.size(0) > 2, [] { HERE; grid(3); }); },
                {"declares its grid outside loops and branches"});
  expectMistake([](View, View, View) { for (Index k : range(3)) { (void)k; HERE; require(true, "x"); } },
                {"require() stands outside loops and branches"});
  expectMistake([](View, View, View) { for (Index k : range(3)) { (void)k; HERE; workspace(f32, {4}); } },
                {"workspace() stands outside loops and branches"});
  expectMistake([](View, View, View) { HERE; workspace(f32, {1, 1, 1, 1, 1, 1}); },
                {"a workspace has 1 to 5 dimensions, not 6"});
  expectMistake([](View, View, View) { HERE; require(iota(4) > 2, "x"); }, {"require() needs a boolean scalar"});
}

// The grid, preconditions and workspaces are computed before anything runs.
TEST(TraceErrors, LaunchDependsOnMemory) {
  expectMistake([](View, View y, View) { HERE; grid(Index(y.at({0}))); },
                {"the grid depends on view sizes, run-time scalars and parameters only"});
  expectMistake([](View, View y, View) { HERE; require(y.at({0}) > 0, "x"); }, {"require() depends on view sizes"});
  expectMistake([](View x, View, View) {
    Index i = grid(x.size(0));
    HERE; workspace(f32, {i + 1});
  }, {"workspace() depends on view sizes"});
}

TEST(TraceErrors, Dot) {
  expectMistake([](View, View y, View) {
    Tile a = reshape(y.load({0}, {4}), {2, 2});
    HERE; dot(a, a);
  }, {"dot of i32 and i32", "not supported", "i8/u8 in i32"});
  expectMistake([](View, View, View m) {
    Tile a = m.load({0, 0}, {4, 4});
    HERE; dot(a, a.to(f16), a);
  }, {"dot of f32 and f16"});
  expectMistake([](View, View, View m) {
    Tile a = m.load({0, 0}, {4, 4}).to(bf16);
    HERE; dot(a, a, a);
  }, {"dot of bf16 and bf16 with an accumulator of bf16"});
  expectMistake([](View, View, View m) {
    Tile a = m.load({0, 0}, {4, 4}).to(bf16);
    HERE; dot(a, a, zeros(f32, {4, 4}), {.fast_accum = true});
  }, {"fast_accum is about the sums of f8 operands, and these are of bf16"});
}

TEST(TraceErrors, Combine) {
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4}), outside = x.at({0});
    HERE; reduce(t, 0, [&](Tile a, Tile b) { return a + b + outside; });
  }, {"the combine function may use its arguments and C++ numbers only"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    HERE; reduce(t, 0, [](Tile a, Tile b) { return a > b; });
  }, {"must return a scalar of type f32"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    HERE; reduce(t, 0, [](Tile a, Tile) { return broadcast(a, {2}); });
  }, {"must return a scalar of type f32"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    CombineMany first = [](const std::vector<Tile> &a, const std::vector<Tile> &) { return std::vector<Tile>{a[0]}; };
    HERE; reduce({t, t}, 0, first);
  }, {"returns 1 values for 2 tiles"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    HERE; reduce({t, x.load({0}, {5})}, 0, [](const std::vector<Tile> &a, const std::vector<Tile> &) { return a; });
  }, {"shape mismatch", "[4]", "[5]"});
  expectMistake([](View x, View, View) {
    CombineMany left = [](const std::vector<Tile> &a, const std::vector<Tile> &) { return a; };
    HERE; scan({x.load({0}, {4}), x.load({0}, {5})}, 0, left);
  }, {"shape mismatch", "scan", "[4]", "[5]"});
  expectMistake([](View, View, View) {
    CombineMany left = [](const std::vector<Tile> &a, const std::vector<Tile> &) { return a; };
    HERE; scan(std::vector<Tile>{}, 0, left);
  }, {"scan needs at least one tile"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    HERE; reduce(t, 0, [](Tile a, Tile b) {
      if_(a > b, [&] { a = b; });
      return a;
    });
  }, {"the combine function may not contain loops, branches"});
  expectMistake([](View x, View, View) {
    Tile t = x.load({0}, {4});
    HERE; reduce(t, 0, [](Tile, Tile) { return Tile(); });
  }, {"must return a scalar of type f32"});
}

TEST(TraceErrors, OutsideAKernel) {
  Tile leaked;
  Kernel leak("leak(x)", [&](View x) { leaked = x.load({0}, {4}); });
  Tensor x = Tensor::zeros(f32, {4});
  LaunchOptions options;
  options.target = Target::interpreter;
  launch(leak, {x}, options);
  unsigned line = __LINE__ + 1;
  std::string text = errorOf([&] { leaked + 1; });
  expectParts(text, {"exist only while a kernel is traced", "LangTraceErrorTest.cpp:" + std::to_string(line)});
  expectParts(errorOf([] { zeros(f32, {4}); }), {"exist only while a kernel is traced", __FILE__});
  expectParts(errorOf([] { Index i = 3; }), {"exist only while a kernel is traced", __FILE__});
  expectParts(errorOf([] { range loop(3); }), {"exist only while a kernel is traced", __FILE__});
  expectParts(errorOf([] { grid(3); }), {"exist only while a kernel is traced", __FILE__});
  // In another kernel it is empty, not a dangling value.
  Kernel use("use(x)", [&](View v) { v.store({0}, leaked); });
  expectParts(errorOf([&] { launch(use, {x}, options); }), {"holds no value yet"});
}

TEST(TraceErrors, ForeignExceptionsPassThrough) {
  Kernel kernel("throws(x)", [](View x) {
    for (Index k : range(3)) {
      x.store({k}, zeros(f32, {1}));
      throw std::out_of_range("mine");
    }
  });
  Tensor x = Tensor::zeros(f32, {4});
  EXPECT_THROW(launch(kernel, {x}), std::out_of_range);
  Kernel branch("throws(x)", [](View v) {
    if_(v.size(0) > 1, [] {}).else_([] { throw std::out_of_range("mine"); });
  });
  EXPECT_THROW(launch(branch, {x}), std::out_of_range);
}

TEST(TraceErrors, Signatures) {
  auto refused = [](const std::string &signature, std::initializer_list<std::string> parts) {
    unsigned line = __LINE__ + 1;
    std::string text = errorOf([&] { Kernel("" + signature, [](View, View, Param) {}); });
    expectParts(text, parts);
    expectParts(text, {"LangTraceErrorTest.cpp:" + std::to_string(line),
                       "it looks like \"scale(x, y, factor, width=1024)\""});
  };
  refused("", {"has no parameter list"});
  refused("name", {"has no parameter list"});
  refused("name(x, y, n", {"has no parameter list"});
  refused("(x, y, n)", {"does not begin with a name"});
  refused("2name(x, y, n)", {"does not begin with a name"});
  refused("name(x, y)", {"names 2 parameters and the lambda has 3"});
  refused("name(x)", {"names 1 parameter and the lambda has 3"});
  refused("name(x, y, n, m)", {"names more parameters than the lambda has (3)"});
  refused("name(x, x, n)", {"names 'x' twice"});
  refused("name(x, , n)", {"has a parameter without a name"});
  refused("name(x, y z, n)", {"has a parameter without a name"});
  refused("name(x=3, y, n)", {"gives 'x' a default, which only a Param may have"});
  refused("name(x, y, n=abc)", {"a default for 'n' that is not an integer"});
  refused("name(x, y, n=1.5)", {"a default for 'n' that is not an integer"});
  refused("name(x, y, n=)", {"a default for 'n' that is not an integer"});
  refused("name(x, y, n=99999999999999999999)", {"a default for 'n' that is not an integer"});
  Kernel spaced(" name ( x,y ,  n = -3 )", [](View, View, Param) {});
  EXPECT_EQ(spaced.name(), "name");
  EXPECT_EQ(spaced.parameters()[2].name, "n");
  EXPECT_EQ(spaced.parameters()[2].defaultValue, -3);
}

} // namespace
