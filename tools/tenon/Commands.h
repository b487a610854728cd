// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

/// The sub-commands. Each adds itself to the application and returns what runs it once the options are parsed. That
/// gives the exit status, done or checkFailed, and throws Error for wrong use.
namespace tenon::tool {

inline constexpr int done = 0, checkFailed = 1, wrongUse = 2;

using Command = std::function<int()>;
Command addDoctor(CLI::App &app);
Command addList(CLI::App &app);
Command addRoofline(CLI::App &app);
Command addRun(CLI::App &app);
Command addVerify(CLI::App &app);
Command addBench(CLI::App &app);
Command addBenchCpu(CLI::App &bench); ///< `tenon bench cpu`: below `bench`, not beside it
Command addBenchGpu(CLI::App &bench); ///< `tenon bench gpu`: the same
Command addBenchLaunch(CLI::App &bench); ///< `tenon bench launch`
Command addCompile(CLI::App &app);
Command addCompare(CLI::App &app);
Command addDemo(CLI::App &app);
Command addTune(CLI::App &app);
Command addTuneWorker(CLI::App &app); ///< what `tenon tune` starts; not shown
Command addProfile(CLI::App &app);
Command addReport(CLI::App &app);
Command addClassic(CLI::App &bench); ///< `tenon bench classic`

} // namespace tenon::tool
