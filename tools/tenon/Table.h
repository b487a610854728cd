// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Terminal.h"

#include <optional>
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
    std::string widest = {}; ///< a text as wide as any to come, for a table that is printed row by row
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
  /// The rows added since the last time, to the standard output, where they are seen at once; first the headings. The
  /// first call decides the width of the columns.
  void printNew();

private:
  struct Layout {
    std::vector<size_t> shown, widths; ///< which columns; of each column
  };
  Layout layout(const Terminal &terminal) const;
  std::string heading(const Terminal &terminal, const Layout &layout) const;
  std::string line(const Terminal &terminal, const Layout &layout, const std::vector<Cell> &cells) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::optional<Layout> printed_; ///< by printNew
  size_t printedRows_ = 0;
};

} // namespace tenon::tool
