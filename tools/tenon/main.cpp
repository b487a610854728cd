// SPDX-License-Identifier: Apache-2.0
//
// tenon: the user's command. Exit status: 0 done, 1 a check failed, 2 wrong use or an error (one sentence on stderr).
#include "Commands.h"
#include "Terminal.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include <sys/resource.h>

using namespace tenon;
using namespace tenon::tool;

namespace {

int complain(std::string_view text) {
  std::fflush(stdout);
  fmt::print(stderr, "{} {}\n", styled(standardError(), Style::bad, "tenon:"), text);
  return wrongUse;
}

/// A shape too large for the machine shall be refused when its memory is asked for, not killed when it is touched.
void limitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
  rlimit limit{};
  uint64_t available = thisMachine().availableBytes;
  if (available && getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur > available) {
    limit.rlim_cur = available;
    setrlimit(RLIMIT_DATA, &limit);
  }
#endif
}

/// Output that could not be written (a full disk) must not look like success.
int finish(int status) {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return complain(fmt::format("cannot write the output: {}", std::strerror(errno ? errno : EIO)));
  return status;
}

int dispatch(int argc, char **argv) {
  CLI::App app("Tenon: write a compute kernel once, at tile level, in C++; compile, verify and measure it here.",
               "tenon");
  app.set_version_flag("--version", "tenon " + tenonVersion());
  app.require_subcommand(0, 1);
  app.footer("\nExamples:\n  tenon demo\n  tenon run softmax --shape 128x512\n  tenon <command> --help\n\n"
             "Exit status: 0 done, 1 a check failed, 2 wrong use.");
  std::vector<Command> commands;
  for (auto add : {addDemo, addDoctor, addList, addRun, addVerify, addBench, addCompile, addRoofline, addCompare,
                   addProfile, addReport, addTune, addTuneWorker})
    commands.push_back(add(app));
  std::vector<CLI::App *> subcommands = app.get_subcommands([](CLI::App *) { return true; });
  std::string names;
  bool known = argc < 2 || argv[1][0] == '-';
  for (CLI::App *subcommand : subcommands) {
    if (!subcommand->get_group().empty()) // the others are not for people
      names += (names.empty() ? "" : ", ") + subcommand->get_name();
    known |= argc >= 2 && subcommand->get_name() == argv[1];
  }
  if (!known)
    return complain(fmt::format("unknown command '{}': the commands are {}", argv[1], names));

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wanted) { // --help, --version
    app.exit(wanted);
    return finish(done);
  } catch (const CLI::ParseError &error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return complain(text + " (see --help)");
  }
  for (size_t i = 0; i < commands.size(); ++i)
    if (subcommands[i]->parsed()) {
      limitMemory();
      return finish(commands[i]());
    }
  return complain(fmt::format("no command given: the commands are {} (see tenon --help)", names));
}

} // namespace

int main(int argc, char **argv) {
  try {
    return dispatch(argc, argv);
  } catch (const std::bad_alloc &) {
    return complain("out of memory: try a smaller shape");
  } catch (const std::exception &error) { // tenon::Error says what is wrong; anything else at least does not abort
    return complain(error.what());
  }
}
