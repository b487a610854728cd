// SPDX-License-Identifier: Apache-2.0
//
// `tenon bench launch`: what a launch costs the host, and what a profile adds to it.
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "Report.h"
#include "Table.h"

#include "tenon/base/Error.h"
#include "tenon/measure/LaunchCost.h"

#include <fmt/format.h>

namespace tenon::tool {
namespace {

struct LaunchRequest {
  std::string target = "all", json;
  int launches = 20000;
};

std::vector<Device> placesOf(const std::string &target) {
  bool hasCuda = whyNoCuda().empty();
  if (target != "all" && target != "cpu" && target != "cuda")
    throw Error(fmt::format("unknown target '{}': the targets here are all, cpu and cuda", target));
  if (target == "cuda" && !hasCuda)
    throw Error("there is no CUDA device to measure: " + whyNoCuda());
  std::vector<Device> places;
  if (target != "cuda")
    places.push_back(Device::cpu());
  if (target != "cpu" && hasCuda)
    places.push_back(Device::cuda(0));
  return places;
}

int benchLaunch(const LaunchRequest &request) {
  std::vector<Device> places = placesOf(request.target);
  Report report("bench launch", request.json, places.back().isCuda() ? 0 : -1);
  using enum Table::Align;
  Table table({{"a launch on"}, {"time", right}, {"driver's call", right}, {"with a profile", right},
               {"a profile adds", right}});
  for (Device device : places) {
    LaunchCost cost = measureLaunchCost(static_cast<size_t>(request.launches), device);
    std::string place = device.isCuda() ? "cuda" : "cpu";
    table.add({place, secondsText(cost.launch), device.isCuda() ? secondsText(cost.driver) : "-",
               secondsText(cost.profiled), secondsText(cost.added)});
    report.add({{"kind", "launch"},
                {"case", "launch cost"},
                {"target", place},
                {"launches", cost.launches},
                {"time", toJson(cost.launch)},
                {"driver_call", device.isCuda() ? toJson(cost.driver) : Json(nullptr)},
                {"profiled", toJson(cost.profiled)},
                {"added_by_profile", toJson(cost.added)}});
  }
  if (!report.quiet())
    table.print();
  report.tellWeather();
  report.write();
  return done;
}

} // namespace

Command addBenchLaunch(CLI::App &bench) {
  CLI::App *command = bench.add_subcommand("launch", "What a launch costs the host, without and with a profile");
  auto request = std::make_shared<LaunchRequest>();
  command->add_option("--target", request->target, "all (what is there), cpu or cuda")
      ->capture_default_str()
      ->type_name("TARGET");
  command->add_option("--launches", request->launches, "How many of each kind")
      ->check(between(200, 10000000))
      ->capture_default_str()
      ->type_name("N");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon bench launch", "tenon bench launch --target cuda --json launch.json"});
  return [request] { return benchLaunch(*request); };
}

} // namespace tenon::tool
