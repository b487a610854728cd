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
#include <set>
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

/// Functions from the .mlir files, without their comments (mutating those is no test).
struct Corpus {
  std::vector<std::string> valid, invalid;
};

Corpus readCorpus() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(TENON_TEST_DIALECT_DIR))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end()); // the order decides what a seed means
  Corpus corpus;
  for (const auto &path : files) {
    std::vector<std::string> &pieces =
        path.stem().string().ends_with("-invalid") ? corpus.invalid : corpus.valid;
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
      else if (size_t start = line.find_first_not_of(' ');
               start != std::string::npos && line.compare(start, 2, "//") != 0)
        piece += line + "\n";
    }
    finish();
  }
  return corpus;
}

bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

/// Whether a value is used where it has not been defined yet. MLIR 19's own parser keeps a dangling use when an op
/// refers forward to a value inside a region and a syntax error follows in that region: such texts never reach our
/// code, and are left out. The test is made for text as the corpus writes it: `%a = ...` at the start of a line, `(%a:
/// type)`.
bool refersForward(const std::string &text) {
  std::vector<std::set<std::string>> scopes(1);
  size_t firstUse = 0; // on this line: values before it are being defined
  for (size_t i = 0; i < text.size(); ++i) {
    bool startsLine = i == 0 || text[i - 1] == '\n';
    if (startsLine) {
      size_t start = text.find_first_not_of(' ', i), end = std::min(text.find('\n', i), text.size());
      size_t equals = text.find('=', i);
      firstUse = start < end && text[start] == '%' && equals < end ? equals : i;
    }
    if (text[i] == '{') {
      scopes.emplace_back();
    } else if (text[i] == '}' && scopes.size() > 1) {
      scopes.pop_back();
    } else if (text[i] == '%') {
      size_t end = i + 1;
      while (end < text.size() && isWordCharacter(text[end]))
        ++end;
      std::string name = text.substr(i, end - i);
      size_t next = text.find_first_not_of(' ', end);
      bool iterates = next < text.size() && text[next] == '=';
      bool defines = i < firstUse || (end < text.size() && text[end] == ':') || iterates;
      if (defines)
        scopes.back().insert(name);
      else if (llvm::none_of(scopes, [&](const auto &scope) { return scope.count(name) != 0; }))
        return true;
    }
  }
  return false;
}

class Mutator {
public:
  Mutator(const Corpus &corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  std::string mutate() {
    std::string text = randomPiece();
    for (size_t edits = 1 + below(2) * below(3); edits > 0; --edits)
      edit(text);
    return text;
  }

private:
  size_t below(size_t bound) { return bound ? random_() % bound : 0; } // not uniform, but the same on every machine

  /// Mostly valid ones: what is wrong twice stops at the first error.
  const std::string &randomPiece() {
    const std::vector<std::string> &pieces = below(4) ? corpus_.valid : corpus_.invalid;
    return pieces[below(pieces.size())];
  }

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
    const std::string &other = randomPiece();
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
      std::istringstream other(randomPiece());
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

  const Corpus &corpus_;
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

// Otherwise the mutations would test nothing.
TEST(Mutation, CorpusIsWhatItSays) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  tenon::tile::loadTileDialects(context);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  Corpus corpus = readCorpus();
  for (const std::string &piece : corpus.valid) {
    EXPECT_TRUE(parseSourceString<ModuleOp>(piece, &context)) << piece;
    EXPECT_FALSE(refersForward(piece)) << piece;
  }
  for (const std::string &piece : corpus.invalid)
    EXPECT_FALSE(parseSourceString<ModuleOp>(piece, &context)) << piece;
}

TEST(Mutation, NeverCrashesAndRoundTrips) {
  Corpus corpus = readCorpus();
  ASSERT_GT(corpus.valid.size(), 20u) << "in " TENON_TEST_DIALECT_DIR;
  ASSERT_GT(corpus.invalid.size(), 50u) << "in " TENON_TEST_DIALECT_DIR;
  // By default the same mutations every time; a longer run starts elsewhere.
  uint64_t first = numberFromEnvironment("TENON_MUTATION_SEED", 1);
  uint64_t count = numberFromEnvironment("TENON_MUTATION_COUNT", 300000);
  std::printf("%llu mutations of %zu pieces, seeds from %llu\n", static_cast<unsigned long long>(count),
              corpus.valid.size() + corpus.invalid.size(), static_cast<unsigned long long>(first));
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, sayWhere);

  uint64_t valid = 0, left = 0;
  std::unique_ptr<MLIRContext> context;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!context || seed % 512 == 0) { // types and attributes are never freed
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      tenon::tile::loadTileDialects(*context);
    }
    std::string text = Mutator(corpus, seed).mutate();
    if (refersForward(text)) {
      ++left;
      continue;
    }
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
  std::printf("%llu of them valid, %llu left out\n", static_cast<unsigned long long>(valid),
              static_cast<unsigned long long>(left));
  if (count >= 1000) {
    EXPECT_GT(valid, count / 50) << "too few reach the printer";
  }
}

} // namespace
