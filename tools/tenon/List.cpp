// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "Report.h"
#include "Table.h"

namespace tenon::tool {
namespace {

int list(const std::string &jsonFile) {
  Report report("list", jsonFile);
  using enum Table::Align;
  using enum Table::Narrow;
  Table table({{"kernel"}, {"summary", left, shrinks}, {"types", left, shrinks}, {"dimensions", left, shrinks},
               {"demo shape", left, goes}});
  for (const zoo::Entry &entry : zoo::entries()) {
    table.add({{entry.name, Style::bold}, entry.summary, dtypesText(entry.dtypes), joined(entry.dimensions, " x "),
               shapeText(entry.demoShape)});
    Json types = Json::array(), params = Json::array();
    for (DType type : entry.dtypes)
      types.push_back(nameOf(type));
    for (const KernelParameter &parameter : entry.kernel.parameters())
      if (parameter.kind == ParameterKind::param) {
        Json value = parameter.defaultValue ? Json(*parameter.defaultValue) : Json(nullptr);
        params.push_back({{"name", parameter.name}, {"default", value}});
      }
    report.add({{"kernel", entry.name},
                {"summary", entry.summary},
                {"dtypes", types},
                {"dimensions", entry.dimensions},
                {"demo_shape", entry.demoShape},
                {"test_shapes", entry.testShapes},
                {"params", params},
                {"source", entry.kernel.where().str()}});
  }
  if (!report.quiet())
    table.print();
  report.write();
  return done;
}

} // namespace

Command addList(CLI::App &app) {
  CLI::App *command = app.add_subcommand("list", "The kernels that come with Tenon");
  auto json = std::make_shared<std::string>();
  addJsonOption(*command, *json);
  addExamples(*command, {"tenon list", "tenon list --json -"});
  return [json] { return list(*json); };
}

} // namespace tenon::tool
