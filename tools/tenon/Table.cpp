// SPDX-License-Identifier: Apache-2.0
#include "Table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>

namespace tenon::tool {
namespace {

constexpr size_t gap = 2;
constexpr size_t narrowest = 8; // a column shortened further than this says nothing

} // namespace

Table::Layout Table::layout(const Terminal &terminal) const {
  std::vector<size_t> widths, least; // of each column; how narrow it could become
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = std::max(columnsOf(columns_[c].heading), columnsOf(columns_[c].widest));
    for (const auto &row : rows_)
      if (c < row.size())
        width = std::max(width, columnsOf(row[c].text));
    widths.push_back(width);
    least.push_back(columns_[c].narrow == Narrow::shrinks ? std::min(width, narrowest) : width);
  }
  std::vector<size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), size_t(0));
  auto total = [&](const std::vector<size_t> &of) {
    size_t sum = 0;
    for (size_t c : shown)
      sum += of[c] + (c == shown.front() ? 0 : gap);
    return sum;
  };
  size_t limit = terminal.width > 0 ? static_cast<size_t>(terminal.width) : SIZE_MAX;
  while (total(least) > limit) {
    auto mayGo = [&](size_t c) { return columns_[c].narrow == Narrow::goes; };
    auto last = std::find_if(shown.rbegin(), shown.rend(), mayGo);
    if (last == shown.rend())
      break;
    shown.erase(std::next(last).base());
  }
  while (total(widths) > limit) { // one off the column with the most to spare
    auto spare = [&](size_t c) { return widths[c] - std::min(least[c], widths[c]); };
    size_t most = *std::max_element(shown.begin(), shown.end(), [&](size_t a, size_t b) {
      return std::pair(spare(a) > 0, widths[a]) < std::pair(spare(b) > 0, widths[b]);
    });
    if (spare(most) == 0)
      break;
    --widths[most];
  }

  return {std::move(shown), std::move(widths)};
}

std::string Table::line(const Terminal &terminal, const Layout &layout, const std::vector<Cell> &cells) const {
  std::string line;
  for (size_t c : layout.shown) {
    Cell cell = c < cells.size() ? cells[c] : Cell("");
    std::string text =
        terminal.width > 0 ? shortened(cell.text, layout.widths[c], terminal.unicode) : std::move(cell.text);
    std::string padding(layout.widths[c] - std::min(layout.widths[c], columnsOf(text)), ' ');
    std::string colored = styled(terminal, cell.style, text);
    line += (c == layout.shown.front() ? "" : std::string(gap, ' ')) +
            (columns_[c].align == Align::right ? padding + colored : colored + padding);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Table::heading(const Terminal &terminal, const Layout &layout) const {
  std::vector<Cell> headings;
  for (const Column &column : columns_)
    headings.emplace_back(column.heading, Style::bold);
  return line(terminal, layout, headings);
}

std::string Table::text(const Terminal &terminal) const {
  Layout fitting = layout(terminal);
  std::string out = heading(terminal, fitting);
  for (const auto &row : rows_)
    out += line(terminal, fitting, row);
  return out;
}

void Table::print() const {
  std::string all = text(standardOutput());
  std::fwrite(all.data(), 1, all.size(), stdout);
}

void Table::printNew() {
  const Terminal &terminal = standardOutput();
  std::string out;
  if (!printed_) {
    printed_ = layout(terminal);
    out = heading(terminal, *printed_);
  }
  for (; printedRows_ < rows_.size(); ++printedRows_)
    out += line(terminal, *printed_, rows_[printedRows_]);
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

} // namespace tenon::tool
