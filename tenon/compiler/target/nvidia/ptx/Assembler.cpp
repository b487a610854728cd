// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/Assembler.h"

#include "tenon/base/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

namespace tenon::nvidia {
namespace {

constexpr auto timeLimit = std::chrono::minutes(2);

std::string programPath(const char *name) {
  if (auto found = llvm::sys::findProgramByName(name))
    return *found;
  if (auto found = llvm::sys::findProgramByName(name, {"/usr/local/cuda/bin"}))
    return *found;
  return "";
}

/// A folder of temporary files with a scope.
class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw Error("cannot make a temporary folder " + pattern);
    path = pattern;
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string file(const char *name) const { return (path / name).string(); }

private:
  std::filesystem::path path;
};

std::string read(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// Runs a program with stdout and stderr in `output`, and returns its exit status; -1 when it cannot be started, dies,
/// or takes too long. (LLVM's own way with a time limit uses the process's alarm signal.)
int execute(std::vector<std::string> command, const std::string &output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char *> arguments;
  for (std::string &argument : command)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  int failed = posix_spawn(&process, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return -1;
  auto end = std::chrono::steady_clock::now() + timeLimit;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The number in front of `what` in a line of ptxas -v, or 0.
int numberBefore(llvm::StringRef line, llvm::StringRef what) {
  size_t place = line.find(what);
  if (place == llvm::StringRef::npos)
    return 0;
  llvm::StringRef before = line.take_front(place).rtrim();
  int number = 0;
  before.take_back(before.size() - (before.find_last_not_of("0123456789") + 1)).getAsInteger(10, number);
  return number;
}

void readReport(llvm::StringRef text, AssemblyReport &report) {
  auto atLeast = [](int &field, int value) { field = std::max(field, value); };
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    atLeast(report.registers, numberBefore(line, " registers"));
    atLeast(report.barriers, numberBefore(line, " barriers"));
    atLeast(report.sharedBytes, numberBefore(line, " bytes smem"));
    atLeast(report.stackBytes, numberBefore(line, " bytes stack frame"));
    atLeast(report.spillStoreBytes, numberBefore(line, " bytes spill stores"));
    atLeast(report.spillLoadBytes, numberBefore(line, " bytes spill loads"));
    // C7508 and C7510 (setmaxnreg ignored, wgmma serialised) come as "info" in some versions.
    if (line.contains("warning") || line.contains("(C75"))
      report.warnings.push_back(line.trim().str());
  }
}

/// nvdisasm alone disassembles; cuobjdump calls it, but finds its own.
void disassemble(const Folder &folder, AssemblyReport &report) {
  std::string tool = programPath("nvdisasm");
  std::vector<std::string> command = {tool, "--print-line-info", folder.file("kernel.cubin")};
  if (tool.empty()) {
    tool = programPath("cuobjdump");
    command = {tool, "-sass", folder.file("kernel.cubin")};
  }
  if (tool.empty()) {
    report.noSass = "neither nvdisasm nor cuobjdump is in the PATH or in /usr/local/cuda/bin";
    return;
  }
  std::string output = folder.file("sass");
  if (int status = execute(command, output))
    report.noSass = tool + " ended with " + std::to_string(status) + ": " + read(output);
  else
    report.sass = read(output);
}

} // namespace

bool hasAssembler() { return !programPath("ptxas").empty(); }

std::optional<AssemblyReport> assemble(const std::string &ptx, const std::string &architecture) {
  std::string ptxas = programPath("ptxas");
  if (ptxas.empty())
    return std::nullopt;
  Folder folder;
  std::string source = folder.file("kernel.ptx"), cubin = folder.file("kernel.cubin"), output = folder.file("output");
  std::ofstream(source, std::ios::binary) << ptx;
  int status = execute({ptxas, "-v", "-lineinfo", "-arch=" + architecture, source, "-o", cubin}, output);
  std::string said = read(output);
  if (status)
    throw InternalError("ptxas refused the PTX for " + architecture + " (status " + std::to_string(status) +
                        "): " + said);
  AssemblyReport report;
  readReport(said, report);
  report.cubin = read(cubin);
  disassemble(folder, report);
  return report;
}

} // namespace tenon::nvidia
