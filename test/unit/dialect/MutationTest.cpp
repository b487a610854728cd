// SPDX-License-Identifier: Apache-2.0
//
// Robustness of parser and verifiers: the text of the dialect's own tests, edited at random, must give IR or an error
// and never a crash; what parses and verifies must print to text that parses and prints to the same text. It must also
// survive canonicalisation, which runs the folders.
//
//     TENON_MUTATION_SEED=17 TENON_MUTATION_COUNT=1 unit-dialect      one mutation again
//
// A crash prints the seed and the text that caused it before the process dies of it.
#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

using namespace mlir;

namespace {

// What the signal handler prints; plain pointers, since it may not allocate.
uint64_t currentSeed = 0;
const char *currentText = nullptr;
size_t currentSize = 0;

void sayWhere(int signal) {
  char digits[24];
  int at = sizeof digits;
  digits[--at] = '\n';
  uint64_t seed = currentSeed;
  do
    digits[--at] = static_cast<char>('0' + seed % 10);
  while (seed /= 10);
  const char head[] = "crash on a mutation; TENON_MUTATION_SEED=";
  [[maybe_unused]] ssize_t written = write(2, head, sizeof head - 1);
  written = write(2, digits + at, sizeof digits - at);
  written = write(2, currentText, currentSize);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// The pieces of every .mlir file, as -split-input-file would cut them, without comments (mutating those is no test).
std::vector<std::string> readCorpus() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(TENON_TEST_DIALECT_DIR))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end()); // the order decides what a seed means
  std::vector<std::string> pieces;
  for (const auto &path : files) {
    std::ifstream file(path);
    std::string line, piece;
    auto finish = [&] {
      if (piece.find_first_not_of(" \n") != std::string::npos)
        pieces.push_back(piece);
      piece.clear();
    };
    while (std::getline(file, line)) {
      if (line.starts_with("// -----") || (line.empty() && piece.find("\n}\n") != std::string::npos))
        finish();
      else if (size_t start = line.find_first_not_of(' '); start != std::string::npos && line.compare(start, 2, "//") != 0)
        piece += line + "\n";
    }
    finish();
  }
  return pieces;
}

class Mutator {
public:
  Mutator(const std::vector<std::string> &corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  std::string mutate() {
    std::string text = corpus_[below(corpus_.size())];
    for (size_t edits = 1 + below(3); edits > 0; --edits)
      edit(text);
    return text;
  }

private:
  size_t below(size_t bound) { return bound ? random_() % bound : 0; } // not uniform, but the same on every machine

  static bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

  /// The tokens of a text as [begin, end): words (with %, @, ^, ! or # in front), strings of digits, single characters.
  static std::vector<std::pair<size_t, size_t>> tokens(const std::string &text) {
    std::vector<std::pair<size_t, size_t>> found;
    for (size_t i = 0; i < text.size();) {
      size_t end = i + 1;
      if (isWordCharacter(text[i]) || std::string_view("%@^!#").find(text[i]) != std::string_view::npos)
        while (end < text.size() && isWordCharacter(text[end]))
          ++end;
      if (text[i] != ' ' && text[i] != '\n')
        found.push_back({i, end});
      i = end;
    }
    return found;
  }

  std::string randomToken() {
    static const char *const interesting[] = {
        "0", "1", "-1", "2", "3", "5", "6", "64", "1048576", "1048577", "4294967296", "9223372036854775807",
        "-9223372036854775808", "18446744073709551616", "f32", "f64", "f16", "bf16", "f8E4M3FN", "f8E5M2", "f80", "i1",
        "i8", "i32", "i64", "i128", "si8", "index", "none", "tensor<f32>", "tensor<*xf32>", "tensor<?xf32>",
        "tensor<0xf32>", "tensor<4xf32>", "tensor<4xi1>", "tensor<1xi64>", "vector<4xf32>", "!tile.view<1, f32>",
        "!tile.view<2, i32>", "tensor<4xf32, \"layout\">", "tensor<4294967296x4294967296xf32>", "{", "}", "(", ")", "[",
        "]", "unsigned", "reverse", "mask", "padding", "dim", "\"\"", "array<i64>", "array<i32: 1, 1, 1, 1>", "dense<0>",
        "dense<[]>", "unit", "true", "loc(unknown)", "tile.yield", "tile.scalar", "tile.splat", "tile.cast"};
    if (below(2))
      return interesting[below(std::size(interesting))];
    const std::string &other = corpus_[below(corpus_.size())];
    auto all = tokens(other);
    if (all.empty())
      return "";
    auto [begin, end] = all[below(all.size())];
    return other.substr(begin, end - begin);
  }

  void editToken(std::string &text) {
    auto all = tokens(text);
    if (all.empty())
      return;
    auto [begin, end] = all[below(all.size())];
    switch (below(4)) {
    case 0: text.erase(begin, end - begin); return;
    case 1: text.insert(end, " " + text.substr(begin, end - begin)); return;
    case 2: { // trade places with another token of the text
      auto [otherBegin, otherEnd] = all[below(all.size())];
      text.replace(begin, end - begin, text.substr(otherBegin, otherEnd - otherBegin));
      return;
    }
    default: text.replace(begin, end - begin, randomToken()); return;
    }
  }

  void editLine(std::string &text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    if (lines.empty())
      return;
    size_t at = below(lines.size());
    switch (below(4)) {
    case 0: lines.erase(lines.begin() + at); break;
    case 1: lines.insert(lines.begin() + at, lines[below(lines.size())]); break;
    case 2: std::swap(lines[at], lines[below(lines.size())]); break;
    default: {
      std::istringstream other(corpus_[below(corpus_.size())]);
      std::string line, chosen;
      for (size_t seen = 1; std::getline(other, line); ++seen)
        if (below(seen) == 0)
          chosen = line;
      lines.insert(lines.begin() + at, chosen);
    }
    }
    text.clear();
    for (const std::string &line : lines)
      text += line + "\n";
  }

  void edit(std::string &text) {
    if (text.empty())
      return;
    switch (below(8)) {
    case 0: text[below(text.size())] = static_cast<char>(below(256)); return;
    case 1: text.erase(below(text.size()), 1 + below(4)); return;
    case 2:
    case 3: editLine(text); return;
    default: editToken(text); return;
    }
  }

  const std::vector<std::string> &corpus_;
  std::mt19937_64 random_;
};

uint64_t numberFromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string print(Operation *op, bool generic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  if (generic)
    flags.printGenericOpForm();
  op->print(stream, flags);
  return text;
}

TEST(Mutation, NeverCrashesAndRoundTrips) {
  std::vector<std::string> corpus = readCorpus();
  ASSERT_GT(corpus.size(), 50u) << "in " TENON_TEST_DIALECT_DIR;
  // By default the same mutations every time; a longer run starts elsewhere.
  uint64_t first = numberFromEnvironment("TENON_MUTATION_SEED", 1);
  uint64_t count = numberFromEnvironment("TENON_MUTATION_COUNT", 20000);
  std::printf("%llu mutations of %zu pieces, seeds from %llu\n", static_cast<unsigned long long>(count), corpus.size(),
              static_cast<unsigned long long>(first));
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, sayWhere);

  uint64_t valid = 0;
  std::unique_ptr<MLIRContext> context;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!context || seed % 512 == 0) { // types and attributes are never freed
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      tenon::tile::loadTileDialects(*context);
    }
    std::string text = Mutator(corpus, seed).mutate();
    currentSeed = seed;
    currentText = text.data();
    currentSize = text.size();
    ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get()); // verifies
    if (!module)
      continue;
    ++valid;
    for (bool generic : {false, true}) {
      std::string printed = print(*module, generic);
      OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(printed, context.get());
      ASSERT_TRUE(again) << "seed " << seed << " prints what does not parse:\n" << printed << "\nfrom:\n" << text;
      ASSERT_EQ(printed, print(*again, generic)) << "seed " << seed << ", from:\n" << text;
    }
    PassManager passes(context.get());
    passes.addPass(createCanonicalizerPass());
    ASSERT_TRUE(succeeded(passes.run(*module))) << "seed " << seed << " does not survive canonicalisation:\n" << text;
  }
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, SIG_DFL);
  std::printf("%llu of them valid\n", static_cast<unsigned long long>(valid));
  if (count >= 1000) {
    EXPECT_GT(valid, count / 50) << "too few reach the printer";
  }
}

} // namespace
