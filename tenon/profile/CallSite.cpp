// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/CallSite.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

namespace tenon::profile {
namespace {

std::string demangled(const char *name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void *)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

/// The module of a frame, where the library is linked as a shared one.
bool isOurLibrary(std::string_view module) {
  size_t slash = module.rfind('/');
  return module.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("libtenon.so");
}

/// A function of the library, where it is linked into the program.
bool isOurs(std::string_view function) {
  for (std::string_view prefix : {"tenon::tool::", "tenon::zoo::"})
    if (function.find(prefix) != std::string_view::npos)
      return false;
  return function.starts_with("tenon::") || function.find(" tenon::") != std::string_view::npos;
}

/// The lines that a command prints.
std::vector<std::string> linesOf(const std::string &command) {
  std::vector<std::string> lines;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> pipe(::popen(command.c_str(), "r"), ::pclose);
  char line[4096];
  while (pipe && std::fgets(line, sizeof line, pipe.get())) {
    std::string text = line;
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    lines.push_back(std::move(text));
  }
  return lines;
}

struct Frame {
  std::string module, offset, function, line;
};

std::vector<Frame> framesOf(const std::string &stack) {
  std::vector<Frame> frames;
  std::stringstream parts(stack);
  for (std::string part; std::getline(parts, part, ';');) {
    size_t plus = part.rfind("+0x", part.find(' '));
    if (plus == std::string::npos)
      continue;
    size_t space = part.find(' ', plus);
    frames.push_back({part.substr(0, plus), part.substr(plus + 1, space - plus - 1),
                      space == std::string::npos ? "" : part.substr(space + 1), ""});
  }
  return frames;
}

/// Whether a program has been stripped: then addr2line names the nearest function that is exported, which is another one.
bool isStripped(const std::string &module) {
  std::vector<std::string> sections = linesOf("readelf -SW '" + module + "' 2>/dev/null");
  return !sections.empty() && std::none_of(sections.begin(), sections.end(), [](const std::string &line) {
    return line.find(" .symtab ") != std::string::npos;
  });
}

/// Functions and lines by addr2line, one call for neighbouring frames of a module: it reads the module's symbols anew
/// each time.
void resolve(std::span<Frame> frames) {
  for (size_t begin = 0, end; begin < frames.size(); begin = end) {
    const std::string &module = frames[begin].module;
    std::string command = "timeout 20 addr2line -Cfe '" + module + "'";
    for (end = begin; end < frames.size() && frames[end].module == module; ++end)
      command += " " + frames[end].offset;
    if (module.find('\'') != std::string::npos)
      continue;
    if (isStripped(module))
      continue; // what the dynamic loader knew of it is all there is
    std::vector<std::string> lines = linesOf(command + " 2>/dev/null");
    for (size_t i = begin; i < end && 2 * (i - begin) + 1 < lines.size(); ++i) {
      const std::string &function = lines[2 * (i - begin)];
      std::string line = lines[2 * (i - begin) + 1];
      if (function != "??")
        frames[i].function = function;
      if (size_t note = line.find(" (discriminator"); note != std::string::npos)
        line.resize(note);
      if (!line.starts_with("??") && !line.ends_with(":?") && !line.ends_with(":0"))
        frames[i].line = line;
    }
  }
}

std::string describeFrames(const std::string &stack) {
  constexpr size_t few = 5; // the caller is nearly always among the first
  std::vector<Frame> frames = framesOf(stack);
  std::string fallback;
  for (size_t begin = 0; begin < frames.size(); begin += few) {
    std::span<Frame> some(frames.begin() + begin, std::min(few, frames.size() - begin));
    resolve(some);
    for (const Frame &frame : some) {
      if (isOurs(frame.function))
        continue;
      std::string text = !frame.function.empty() ? frame.function : frame.module + "+" + frame.offset;
      if (!frame.line.empty())
        text += " at " + frame.line;
      if (fallback.empty())
        fallback = text;
      if (!frame.function.empty() || !frame.line.empty())
        return text;
    }
  }
  return fallback;
}

} // namespace

uint64_t Stack::hash() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (int i = 0; i < count; ++i)
    hash = (hash ^ reinterpret_cast<uintptr_t>(frames[i])) * 0x100000001b3;
  return hash;
}

Stack captureStack() {
  Stack stack;
  stack.count = ::backtrace(stack.frames.data(), static_cast<int>(stack.frames.size()));
  return stack;
}

std::string describeStack(const Stack &stack) {
  std::string text;
  for (int i = 0; i < stack.count; ++i) {
    Dl_info info{};
    // The address returned to may be in the next line, or the next function: one byte before lies in the call.
    auto *address = static_cast<char *>(stack.frames[i]) - 1;
    if (!::dladdr(address, &info) || !info.dli_fname || isOurLibrary(info.dli_fname))
      continue;
    std::string function = info.dli_sname ? demangled(info.dli_sname) : "";
    if (isOurs(function))
      continue;
    char offset[32];
    std::snprintf(offset, sizeof offset, "+0x%zx", static_cast<size_t>(address - static_cast<char *>(info.dli_fbase)));
    text += (text.empty() ? "" : ";") + std::string(info.dli_fname) + offset + (function.empty() ? "" : " " + function);
  }
  return text;
}

std::string describeSite(const std::string &stack) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  std::lock_guard lock(mutex);
  auto [entry, isNew] = known.try_emplace(stack);
  if (isNew)
    entry->second = describeFrames(stack);
  return entry->second;
}

} // namespace tenon::profile
