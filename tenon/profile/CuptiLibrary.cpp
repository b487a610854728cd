// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/Cupti.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <glob.h>

namespace tenon::profile {
namespace {

/// The files that a pattern matches, those with the larger names (the newer versions) first.
void addMatches(std::vector<std::string> &found, const std::string &pattern) {
  glob_t matches{};
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0)
    for (size_t i = matches.gl_pathc; i-- > 0;)
      if (std::string path = matches.gl_pathv[i]; std::find(found.begin(), found.end(), path) == found.end())
        found.push_back(std::move(path));
  ::globfree(&matches);
}

} // namespace

std::vector<std::string> cuptiCandidates() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string chosen = variable("TENON_CUPTI"); !chosen.empty())
    return chosen == "none" ? std::vector<std::string>() : std::vector<std::string>{chosen};
  std::vector<std::string> found = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  auto addToolkit = [&](const std::string &root) {
    for (const char *folder : {"/extras/CUPTI/lib64", "/targets/*-linux/lib", "/lib64"})
      addMatches(found, root + folder + "/libcupti.so.[0-9][0-9]");
  };
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = variable(name); !root.empty())
      addToolkit(root);
  addToolkit("/usr/local/cuda");
  addToolkit("/usr/local/cuda-*");
  for (const char *name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (std::string root = variable(name); !root.empty())
      addMatches(found, root + "/lib/python3*/site-packages/nvidia/cu*/lib/libcupti.so.[0-9][0-9]");
  addMatches(found, "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib/libcupti.so.[0-9][0-9]");
  return found;
}

} // namespace tenon::profile
