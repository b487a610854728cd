// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tenon::tool {

/// A folder that is gone when this is.
class ScratchFolder {
public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

/// Runs a program to its end, without this command's own limit on memory; its exit status, 128 and the signal's number
/// where one ended it. Variables with an empty value are taken out of its environment. `toStandardError`: what it prints
/// goes there, since the standard output is for this command's results alone.
int runProgram(const std::vector<std::string> &program,
               const std::vector<std::pair<std::string, std::string>> &environment, bool toStandardError = false);

std::string textOf(const std::filesystem::path &file);

} // namespace tenon::tool
