// SPDX-License-Identifier: Apache-2.0
#include "OutputFile.h"

#include "tenon/base/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

/// /dev/null or a process substitution must not be renamed over.
bool writtenInPlace(const std::string &file) {
  std::error_code failed;
  fs::file_status status = fs::status(file, failed);
  return fs::exists(status) && !fs::is_regular_file(status);
}

std::string asideOf(const std::string &file) { return file + ".tmp" + std::to_string(getpid()); }

[[noreturn]] void refuse(const std::string &file, int error) {
  throw Error("cannot write '" + file + "': " + std::strerror(error));
}

} // namespace

void checkWritable(const std::string &file) {
  if (fs::is_directory(file))
    refuse(file, EISDIR);
  if (writtenInPlace(file))
    return;
  std::FILE *stream = std::fopen(asideOf(file).c_str(), "w");
  if (!stream)
    refuse(file, errno);
  std::fclose(stream);
  std::remove(asideOf(file).c_str());
}

void writeFile(const std::string &file, const std::string &text) {
  bool inPlace = writtenInPlace(file);
  std::string path = inPlace ? file : asideOf(file);
  std::FILE *stream = std::fopen(path.c_str(), "w");
  if (!stream)
    refuse(file, errno);
  bool done = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  int error = errno;
  if (std::fclose(stream) != 0 && done) {
    error = errno;
    done = false;
  }
  if (done && !inPlace && std::rename(path.c_str(), file.c_str()) != 0) {
    error = errno;
    done = false;
  }
  if (done)
    return;
  if (!inPlace)
    std::remove(path.c_str());
  refuse(file, error);
}

} // namespace tenon::tool
