// SPDX-License-Identifier: Apache-2.0
#include "Terminal.h"

#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

namespace tenon::tool {
namespace {

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

bool localeIsUtf8() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (std::string value = environment(name); !value.empty()) // the first that is set decides
      return strcasestr(value.c_str(), "utf-8") || strcasestr(value.c_str(), "utf8");
  return false;
}

Terminal inspect(int descriptor) {
  Terminal terminal;
  std::string kind = environment("TERM");
  terminal.interactive = isatty(descriptor) && !kind.empty() && kind != "dumb";
  if (!terminal.interactive)
    return terminal;
  terminal.color = environment("NO_COLOR").empty(); // the convention: any non-empty value means no colour
  terminal.unicode = localeIsUtf8();
  winsize size{};
  terminal.width = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  return terminal;
}

} // namespace

const Terminal &standardOutput() {
  static const Terminal terminal = inspect(STDOUT_FILENO);
  return terminal;
}

const Terminal &standardError() {
  static const Terminal terminal = inspect(STDERR_FILENO);
  return terminal;
}

std::string styled(const Terminal &terminal, Style style, std::string_view text) {
  const char *code = "";
  switch (style) {
  case Style::plain: break;
  case Style::bold: code = "\033[1m"; break;
  case Style::dim: code = "\033[2m"; break;
  case Style::good: code = "\033[32m"; break;
  case Style::bad: code = "\033[31m"; break;
  case Style::warn: code = "\033[33m"; break;
  }
  if (!terminal.color || !*code)
    return std::string(text);
  return code + std::string(text) + "\033[0m";
}

size_t columnsOf(std::string_view text) {
  size_t columns = 0;
  for (char c : text)
    columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80; // not a continuation byte
  return columns;
}

std::string shortened(std::string_view text, size_t columns, bool unicode) {
  if (columnsOf(text) <= columns)
    return std::string(text);
  std::string_view mark = unicode ? "…" : "...";
  size_t keep = columns - std::min(columns, columnsOf(mark)), end = 0;
  for (size_t taken = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && taken++ == keep)
      break;
  return std::string(text.substr(0, end)) + std::string(mark);
}

} // namespace tenon::tool
