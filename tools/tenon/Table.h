// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Terminal.h"

#include <string>
#include <vector>

namespace tenon::tool {

/// Text in columns. On a terminal: bold headings, colours, and columns shortened or left out, as each allows, until the
/// table fits. Elsewhere: the same columns aligned by spaces (at least two between them, so that `awk -F'  +'` reads
/// it), complete whatever its width.
class Table {
public:
  enum class Align : unsigned char { left, right };
  /// What may become of a column on a narrow terminal: nothing, its texts shortened, or left out (the last one first).
  enum class Narrow : unsigned char { stays, shrinks, goes };
  struct Column {
    std::string heading;
    Align align = Align::left;
    Narrow narrow = Narrow::stays;
  };
  struct Cell {
    std::string text;
    Style style = Style::plain;
    Cell(std::string text, Style style = Style::plain) : text(std::move(text)), style(style) {}
    Cell(const char *text) : text(text) {}
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text(const Terminal &terminal) const;
  /// To the standard output.
  void print() const;

private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

} // namespace tenon::tool
