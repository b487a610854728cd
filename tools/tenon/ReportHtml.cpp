// SPDX-License-Identifier: Apache-2.0
//
// `tenon report RESULTS... -o report.html`.
#include "ReportHtml.h"

#include "Commands.h"
#include "OutputFile.h"
#include "Progress.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Machine.h"
#include "tenon/measure/MeasuredCeilings.h"

#include <fmt/format.h>

namespace tenon::tool {
namespace {

struct ReportRequest {
  std::vector<std::string> files;
  std::string output = "report.html";
  int code = 24;
  bool noCeilings = false;
};

std::string gpuOf(const Results &file, const char *field) {
  if (!file.json.contains("gpu") || !file.json["gpu"].is_object())
    return "";
  return file.json["gpu"].value(field, "");
}

/// The roofs of a place: those that the file tells, of a GPU its datasheet, of this machine what is measured here.
std::optional<model::Ceilings> ceilingsOf(const Results &file, const ResultRow &row) {
  if (file.json.contains("ceilings"))
    if (auto told = ceilingsFromJson(file.json["ceilings"]); told && told->isGpu == (row.target == "cuda"))
      return told;
  if (row.target == "cuda")
    return model::gpuDatasheet(gpuOf(file, "name"));
  bool isHere = row.target == "cpu" && placeOf(file, row) == thisMachine().cpu && file.json.contains("machine") &&
                file.json["machine"].value("processors", 0) == thisMachine().processors;
  return isHere ? std::optional(cpuCeilings()) : std::nullopt;
}

void addCode(ReportData &data, size_t most, Progress &progress) {
  for (const Results &file : data.files)
    for (const ResultRow &row : file.rows) {
      std::string key = codeKey(row);
      std::optional<DType> dtype = parseDType(row.dtype);
      bool isGpu = row.target == "cuda" || row.target == "sim";
      if (data.codeByKey.contains(key) || data.code.size() >= most || !dtype || (!isGpu && row.target != "cpu"))
        continue;
      for (const zoo::Entry &entry : zoo::entries()) {
        if (entry.name != row.kernel || entry.dimensions.size() != row.shape.size())
          continue;
        progress.show("compiling " + row.label());
        std::string architecture = gpuOf(file, "architecture");
        try {
          data.code.push_back(
              codeOf(entry, row.shape, *dtype, row.params, isGpu, architecture.empty() ? "sm_90a" : architecture));
          data.codeByKey[key] = data.code.size() - 1;
        } catch (const Error &) {
          // A kernel of another version may not compile with the parameters of then: the figures stand without it.
        }
      }
    }
}

int writeReport(const ReportRequest &request) {
  if (request.files.empty())
    throw Error("which results? Say `tenon report RESULTS.json... -o report.html`; `tenon bench --json` writes them");
  checkWritable(request.output);
  ReportData data;
  for (const std::string &file : request.files)
    data.files.push_back(readResults(file));
  size_t rows = 0;
  {
    Progress progress(1);
    for (const Results &file : data.files)
      for (const ResultRow &row : file.rows) {
        ++rows;
        std::string place = placeOf(file, row);
        if (request.noCeilings || data.ceilings.contains(place))
          continue;
        progress.show("finding the roofs of " + place);
        if (auto found = ceilingsOf(file, row))
          data.ceilings[place] = *found;
      }
    addCode(data, static_cast<size_t>(request.code), progress);
  }
  if (rows == 0)
    throw Error(fmt::format("'{}' has no results of kernels: nothing to report", request.files[0]));
  writeFile(request.output, pageOf(pageData(data)));
  fmt::print("{}: {} result{}, the code of {} kernel{}; open it in a browser\n", request.output, rows,
             rows == 1 ? "" : "s", data.code.size(), data.code.size() == 1 ? "" : "s");
  return done;
}

} // namespace

Command addReport(CLI::App &app) {
  CLI::App *command = app.add_subcommand("report", "Make one HTML file, which works offline, of results");
  auto request = std::make_shared<ReportRequest>();
  command->add_option("results", request->files, "Files that `tenon bench --json` wrote")->type_name("RESULTS");
  command->add_option("-o,--output", request->output, "The page to write")->capture_default_str()->type_name("FILE");
  command->add_option("--code", request->code, "Compile at most so many of the kernels to show their code")
      ->check(between(0, 1000))
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--no-ceilings", request->noCeilings, "Draw no roofs: of this machine they are measured once");
  addExamples(*command, {"tenon bench --all --json bench.json && tenon report bench.json",
                         "tenon report gpu.json cpu.json -o both.html"});
  return [request] { return writeReport(*request); };
}

} // namespace tenon::tool
