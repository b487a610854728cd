// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Terminal.h"

#include <string>
#include <vector>

namespace tenon::tool {

/// Text in columns. On a terminal: bold headings, colours, and the column that can best spare it shortened until the table
/// fits. Elsewhere: the same columns aligned by spaces (at least two between them, so that `awk -F'  +'` reads it),
/// complete whatever its width.
class Table {
public:
  enum class Align : unsigned char { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
    bool shrinks = false; ///< may be shortened on a narrow terminal
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
