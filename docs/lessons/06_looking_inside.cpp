// SPDX-License-Identifier: Apache-2.0
//
// Lesson 6: looking inside.
//
// A compiler you cannot look into is one you have to trust. emit() stops after any phase and gives the program as text,
// prepare() says how a kernel came to be, and neither runs it.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <sstream>

using namespace tenon;

static const Kernel softmax("softmax(x, y, cols=64)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0));
  Tile t = x.load({row, 0}, {1, cols}, -inf);
  t = exp(t - max(t, 1));
  y.store({row, 0}, t / sum(t, 1));
});

static int count(const std::string &text, std::string_view what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

static void show(const char *title, const std::string &text, int lines) {
  std::printf("\n--- %s\n", title);
  std::istringstream in(text);
  std::string line;
  for (int i = 0; i < lines && std::getline(in, line); ++i)
    std::printf("%s\n", line.substr(0, 118).c_str());
}

int main() {
  Tensor x = Tensor::empty(f32, {8, 64}), y = Tensor::empty(f32, {8, 64});
  x.fillRandom(1, -1, 1);
  Arguments arguments = {x, y};
  // One instruction set for all readers: "native" would show your processor's, and is what a launch uses.
  LaunchOptions options;
  options.compile.isa = "baseline";

  std::printf("the phases, in order:\n");
  for (const PhaseInfo &phase : compilePhases()) {
    try {
      std::string text = emit(softmax, arguments, phase.name, options);
      std::printf("  %-13s %5d lines  %s\n", phase.name.c_str(), count(text, "\n"), phase.summary.c_str());
    } catch (const Error &error) { // the last one needs programs of NVIDIA's
      std::printf("  %-13s %s\n", phase.name.c_str(), error.what());
    }
  }

  // Tile IR: the kernel as recorded. Tiles are values (tensor<1x64xf32>), and nothing is said about how.
  std::string tile = emit(softmax, arguments, "tile", options);
  show("tile: a reduction is one operation with a region that combines two elements", tile, 18);
  lesson::expect(count(tile, "tile.reduce") == 2, "two reductions: the maximum and the sum");

  // Loops: what one instance does. Where did the tiles go? The load, the subtraction and the exponential are computed
  // by the loop that needs them, element by element; only what is needed by two loops is kept in scratch memory.
  std::string loops = emit(softmax, arguments, "loops", options);
  std::printf("\n--- loops: %d vector exponentials and %d divisions in the text, in two versions of each loop:\n"
              "    one for tiles inside the view, and one with every access checked\n",
              count(loops, "math.exp"), count(loops, "arith.divf"));
  lesson::expect(count(loops, "tensor<") == 0, "no tile is left: loads, maths, sums and stores share loops");

  std::string assembly = emit(softmax, arguments, "asm", options);
  show("asm: the machine code, from its beginning", assembly, 6);
  lesson::expect(count(assembly, "expf") == 0, "no call of a C library's expf: the exponential is our own, inline");

  // The report of a compilation: which phases ran and for how long. What this process has compiled before comes from
  // memory; what an earlier one compiled comes from the disk cache ($TENON_CACHE_DIR, or ~/.cache/tenon).
  LaunchOptions fresh;
  fresh.compile.useDiskCache = false;
  CompileReport report = prepare(softmax, arguments, fresh);
  std::printf("\ncompiled in %.1f ms:", report.milliseconds());
  for (const CompileReport::Phase &phase : report.phases)
    std::printf(" %s %.1f", phase.name.c_str(), phase.milliseconds);
  std::printf("\n");
  lesson::expect(!report.fromMemory && !report.fromDisk, "the first time it is compiled");
  lesson::expect(prepare(softmax, arguments, fresh).fromMemory, "the second time it is there");

  // A copy of the kernel's text in another Kernel has no memory of its own yet, but the disk does not care for names:
  // the key is a hash of the program, the options and the build.
  auto make = [] {
    return Kernel("scale(x, y, cols=64)", [](View a, View b, Param cols) {
      Index row = grid(a.size(0));
      b.store({row, 0}, a.load({row, 0}, {1, cols}) * 2);
    });
  };
  Kernel one = make(), two = make();
  prepare(one, arguments);
  CompileReport again = prepare(two, arguments);
  std::printf("the same program once more: %.1f ms, key %s...\n", again.milliseconds(),
              again.key.substr(0, 16).c_str());
  lesson::expect(again.fromDisk, "it came from the disk cache");
  return lesson::finish();
}
