// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"
#include "ReportCode.h"

#include "tenon/measure/Results.h"
#include "tenon/model/Ceilings.h"

#include <map>
#include <vector>

/// One HTML file that works offline: the page of tools/tenon/report/ with its style, its scripts and the data.
namespace tenon::tool {

struct ReportData {
  std::vector<Results> files;
  std::map<std::string, model::Ceilings> ceilings; ///< by placeOf()
  std::vector<KernelCode> code;
  /// Which of `code` a row of a file has, by its key: see codeKey().
  std::map<std::string, size_t> codeByKey;
};

/// Where a row was measured: "NVIDIA H200", "AMD EPYC".
std::string placeOf(const Results &results, const ResultRow &row);
/// Rows with the same have the same code.
std::string codeKey(const ResultRow &row);

/// What the page's scripts read.
Json pageData(const ReportData &data);
std::string pageOf(const Json &data);

} // namespace tenon::tool
