// SPDX-License-Identifier: Apache-2.0
#include "ReportCode.h"

#include "GpuMachine.h"

#include "tenon/base/Error.h"
#include "tenon/jit/Lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

constexpr size_t maxLines = 6000; // of a listing: more than a reader or a browser wants

std::vector<std::string> splitLines(const std::string &text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(std::move(line));
  return lines;
}

unsigned parseNumber(std::string_view text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Where the parenthesis that opens at `open` closes; strings are skipped.
size_t closing(std::string_view text, size_t open) {
  int depth = 0;
  bool inString = false;
  for (size_t i = open; i < text.size(); ++i) {
    char c = text[i];
    if (inString)
      inString = c != '"' || text[i - 1] == '\\';
    else if (c == '"')
      inString = true;
    else if (c == '(')
      ++depth;
    else if (c == ')' && --depth == 0)
      return i;
  }
  return std::string_view::npos;
}

/// The line in a location such as loc(fused["a.cpp":3:5, ...]), if the file is the one.
unsigned lineOfLocation(std::string_view location, const std::string &file) {
  std::string wanted = "\"" + file + "\":";
  size_t at = location.find(wanted);
  return at == std::string_view::npos ? 0 : parseNumber(location.substr(at + wanted.size()));
}

/// The source file: named from the root of the repository, in which the program or the caller is.
std::vector<std::string> sourceOf(const std::string &file) {
  for (const fs::path &root :
       {fs::path("."), fs::path(programDirectory()) / ".." / "..", fs::path(programDirectory()) / ".."})
    if (std::ifstream stream(root / file); stream) {
      std::stringstream text;
      text << stream.rdbuf();
      return splitLines(text.str());
    }
  return {};
}

Listing cut(Listing listing) {
  if (listing.lines.size() > maxLines) {
    size_t left = listing.lines.size() - maxLines;
    listing.lines.resize(maxLines);
    listing.lines.push_back({fmt::format("... and {} more lines", left), 0});
  }
  return listing;
}

} // namespace

std::vector<CodeLine> linesOfMlir(const std::string &text, const std::string &file) {
  std::vector<CodeLine> lines;
  for (std::string &line : splitLines(text)) {
    unsigned source = 0;
    for (size_t at; (at = line.find(" loc(")) != std::string::npos;) {
      size_t end = closing(line, at + 4);
      if (end == std::string::npos)
        break;
      if (unsigned found = lineOfLocation(std::string_view(line).substr(at, end - at), file))
        source = found; // the last is the op's own, those before it are of its block's arguments
      line.erase(at, end + 1 - at);
    }
    lines.push_back({std::move(line), source});
  }
  return lines;
}

std::vector<CodeLine> linesOfAssembly(const std::string &text, const std::string &file) {
  std::string name = fs::path(file).filename().string();
  std::map<unsigned, bool> isOurs; // by the number of the file
  std::vector<CodeLine> lines;
  unsigned source = 0;
  for (std::string &line : splitLines(text)) {
    std::string_view word(line);
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    if (word.starts_with(".file") && word.find('"') != std::string_view::npos) {
      std::string_view number = word.substr(std::min(word.find_first_of("0123456789"), word.size()));
      if (!number.empty())
        isOurs[parseNumber(number)] = word.find(name) != std::string_view::npos;
      continue;
    }
    if (word.starts_with(".loc")) {
      size_t first = word.find_first_of("0123456789");
      size_t second = word.find_first_of("0123456789", word.find_first_of(" \t", first));
      if (second == std::string_view::npos)
        continue;
      auto found = isOurs.find(parseNumber(word.substr(first)));
      // PTX names its files at the end: what is not known to be another file's is ours.
      source = found != isOurs.end() && !found->second ? 0 : parseNumber(word.substr(second));
      continue;
    }
    if (word.starts_with(".Ltmp") || word.starts_with("$L__tmp"))
      continue;
    bool isCode = !word.empty() && word[0] != '.' && word[0] != '#' && word[0] != '/' && word[0] != '$' &&
                  !word.ends_with(":") && line[0] == '\t';
    if (word.starts_with(".Lfunc_end") || word.starts_with("$L__func_end"))
      source = 0;
    lines.push_back({std::move(line), isCode ? source : 0});
  }
  return lines;
}

KernelCode codeOf(const zoo::Entry &entry, std::vector<int64_t> shape, DType dtype, const Params &params, bool isGpu,
                  const std::string &architecture) {
  // The code does not depend on how many rows there are beyond what divides their number.
  constexpr int64_t rows = 16;
  if (!shape.empty())
    shape[0] = std::min(shape[0], rows);
  Problem problem = entry.makeProblem(shape, dtype, 1);
  LaunchOptions options;
  options.params = problem.params;
  for (const auto &[name, value] : params)
    options.params[name] = value;
  options.compile.useDiskCache = false;
  if (isGpu) {
    options.target = Target::sim; // compiled for a GPU, and none is asked for
    options.compile.gpu = architecture;
  }
  KernelCode code;
  code.label = fmt::format("{} {} {}", entry.name, nameOf(dtype), isGpu ? architecture : "cpu");
  code.file = entry.kernel.where().file;
  code.source = sourceOf(code.file);
  struct Wanted {
    const char *phase, *title;
    bool isAssembly;
  };
  std::vector<Wanted> wanted = {{"tile", "Tile IR as traced from C++", false}};
  if (isGpu)
    wanted.insert(wanted.end(), {{"layouts", "Tile IR with layouts over threads", false},
                                 {"threads", "What one thread does", false},
                                 {"ptx", "PTX", true}});
  else
    wanted.insert(wanted.end(), {{"loops", "Loop nests over vectors", false}, {"asm", "x86 assembly", true}});
  for (const Wanted &one : wanted) {
    std::string text = jit::emitWithLines(entry.kernel, problem.arguments, one.phase, options);
    code.listings.push_back(
        cut({one.phase, one.title, one.isAssembly ? linesOfAssembly(text, code.file) : linesOfMlir(text, code.file)}));
  }
  return code;
}

} // namespace tenon::tool
