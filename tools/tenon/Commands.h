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
Command addRun(CLI::App &app);
Command addVerify(CLI::App &app);
Command addBench(CLI::App &app);
Command addBenchGpu(CLI::App &bench); ///< `tenon bench gpu`: below `bench`, not beside it
Command addCompile(CLI::App &app);
Command addDemo(CLI::App &app);

} // namespace tenon::tool
