// SPDX-License-Identifier: Apache-2.0
#include "Table.h"

#include <algorithm>
#include <cstdio>

namespace tenon::tool {
namespace {

constexpr size_t gap = 2;
constexpr size_t narrowest = 8; // a column shortened further than this says nothing

} // namespace

std::string Table::text(const Terminal &terminal) const {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = columnsOf(columns_[c].heading);
    for (const auto &row : rows_)
      if (c < row.size())
        width = std::max(width, columnsOf(row[c].text));
    widths.push_back(width);
    total += width + (c ? gap : 0);
  }
  while (terminal.width > 0 && total > static_cast<size_t>(terminal.width)) {
    size_t widest = columns_.size();
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].shrinks && widths[c] > narrowest && (widest == columns_.size() || widths[c] > widths[widest]))
        widest = c;
    if (widest == columns_.size())
      break;
    --widths[widest];
    --total;
  }

  std::string out;
  auto addLine = [&](const std::vector<Cell> &cells) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      Cell cell = c < cells.size() ? cells[c] : Cell("");
      std::string shown = shortened(cell.text, widths[c], terminal.unicode);
      std::string padding(widths[c] - columnsOf(shown), ' ');
      std::string colored = styled(terminal, cell.style, shown);
      line += (c ? std::string(gap, ' ') : "") +
              (columns_[c].align == Align::right ? padding + colored : colored + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  std::vector<Cell> headings;
  for (const Column &column : columns_)
    headings.emplace_back(column.heading, Style::bold);
  addLine(headings);
  for (const auto &row : rows_)
    addLine(row);
  return out;
}

void Table::print() const {
  std::string all = text(standardOutput());
  std::fwrite(all.data(), 1, all.size(), stdout);
}

} // namespace tenon::tool
