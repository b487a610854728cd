// SPDX-License-Identifier: Apache-2.0
#include "RooflineAll.h"

#include "Commands.h"
#include "Format.h"
#include "Progress.h"
#include "Table.h"

#include "tenon/measure/MeasuredCeilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::tool {
namespace {

/// How far measured times are from the expected ones.
struct Agreement {
  std::vector<double> ratios; ///< measured over expected

  /// The ratio below which a part of them lies.
  double quantile(double part) const {
    std::vector<double> sorted = ratios;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(std::lround(part * static_cast<double>(sorted.size() - 1)))];
  }
  /// The part of them within a factor.
  double within(double factor) const {
    auto count = std::count_if(ratios.begin(), ratios.end(),
                               [&](double ratio) { return ratio <= factor && ratio >= 1 / factor; });
    return static_cast<double>(count) / static_cast<double>(ratios.size());
  }
};

RooflineRequest requestOf(const RooflineRequest &all, const Case &one, bool isFirst) {
  RooflineRequest request = all;
  request.remeasure &= isFirst; // one set of ceilings for all of them
  request.kernel = one.entry->name;
  request.all = false;
  request.shapes.clear();
  for (int64_t size : one.shape)
    request.shapes = {request.shapes.empty() ? std::to_string(size) : request.shapes[0] + "x" + std::to_string(size)};
  request.dtypes = {std::string(nameOf(one.dtype))};
  return request;
}

std::vector<Table::Cell> rowOf(const RooflineFigures &figures) {
  std::string measured = figures.seconds ? secondsText(figures.seconds->median) : "-";
  std::string ratio =
      figures.seconds ? fmt::format("{:.2f}x", figures.seconds->median / figures.cost.seconds) : "-";
  return {figures.one.label(),
          figures.cost.boundBy,
          secondsText(figures.least()),
          secondsText(figures.cost.seconds),
          measured,
          ratio,
          {figures.failure, Style::bad}};
}

} // namespace

int compareWithModel(const RooflineRequest &request, Report &report) {
  using enum Table::Align;
  checkRooflineTarget(request.target); // once, rather than for every kernel
  Request casesOnly = request;
  casesOnly.target = "cpu"; // the demo shapes, whatever the target
  std::vector<Case> cases = casesOf(casesOnly, Defaults::demo);
  Table table({{"kernel", left, Table::Narrow::shrinks},
               {"expected bound", left, Table::Narrow::goes},
               {"roof", right},
               {"expected", right},
               {"measured", right},
               {"measured/expected", right},
               {"note", left, Table::Narrow::shrinks}});
  Agreement agreement;
  bool failed = false, hasCeilings = false;
  report.set("complete", false); // until the end: what there is when it is broken off is kept
  {
    Progress progress(cases.size());
    for (const Case &one : cases) {
      try {
        RooflineFigures figures =
            findRoofline(requestOf(request, one, /*isFirst=*/&one == &cases.front()),
                         [&](const std::string &what) { progress.show(what); });
        if (!hasCeilings)
          report.set("ceilings", tenon::toJson(figures.ceilings));
        hasCeilings = true;
        if (figures.seconds)
          agreement.ratios.push_back(figures.seconds->median / figures.cost.seconds);
        failed |= !figures.failure.empty();
        table.add(rowOf(figures));
        report.add(toJson(figures));
      } catch (const Error &error) {
        failed = true;
        table.add({one.label(), "-", "-", "-", "-", "-", {error.what(), Style::bad}});
        report.add({{"kernel", one.entry->name},
                    {"shape", one.shape},
                    {"dtype", nameOf(one.dtype)},
                    {"target", request.target},
                    {"failure", error.what()}});
      }
      progress.advance();
      if (!report.quiet())
        report.write();
    }
  }
  Json summary = nullptr;
  if (!agreement.ratios.empty())
    summary = {{"cases", agreement.ratios.size()},
               {"median_ratio", agreement.quantile(0.5)},
               {"within_1.5", agreement.within(1.5)},
               {"within_2", agreement.within(2)}};
  report.set("agreement", summary);
  report.set("complete", true);
  if (!report.quiet()) {
    table.print();
    if (!agreement.ratios.empty())
      fmt::print("\nmeasured over expected: median {:.2f}, from {:.2f} to {:.2f}; {:.0f}% of {} within a factor of "
                 "1.5, {:.0f}% within 2\n",
                 agreement.quantile(0.5), agreement.quantile(0), agreement.quantile(1), 100 * agreement.within(1.5),
                 agreement.ratios.size(), 100 * agreement.within(2));
  }
  report.tellWeather();
  report.write();
  return failed ? checkFailed : done;
}

} // namespace tenon::tool
