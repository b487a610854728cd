// SPDX-License-Identifier: Apache-2.0
#include "ChildProgram.h"

#include "tenon/base/Error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tenon::tool {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() : path_((fs::temp_directory_path() / "tenon-profile-XXXXXX").string()) {
  if (!::mkdtemp(path_.data()))
    throw Error(fmt::format("cannot make a folder in {}", fs::temp_directory_path().string()));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

int runProgram(const std::vector<std::string> &program,
               const std::vector<std::pair<std::string, std::string>> &environment, bool toStandardError) {
  int failure[2]; // tells why the program could not be started; closed by exec
  if (::pipe2(failure, O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot start '{}': {}", program[0], std::strerror(errno)));
  std::vector<char *> words;
  for (const std::string &word : program)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child == 0) {
    for (const auto &[name, value] : environment)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    rlimit limit{}; // this command's own limit on memory is not the program's
    if (::getrlimit(RLIMIT_DATA, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      ::setrlimit(RLIMIT_DATA, &limit);
    }
    if (toStandardError)
      ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execvp(words[0], words.data());
    int error = errno;
    [[maybe_unused]] ssize_t written = ::write(failure[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(failure[1]);
  int error = 0;
  bool started = child > 0 && ::read(failure[0], &error, sizeof error) == 0;
  ::close(failure[0]);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!started)
    throw Error(fmt::format("cannot start '{}': {}", program[0], std::strerror(child < 0 ? errno : error)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string textOf(const fs::path &file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

} // namespace tenon::tool
