// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Turn.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace tenon::tuning {

Turn::Turn(const std::string &name, const std::function<bool()> &stop) {
  std::error_code unknown;
  std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  if (unknown)
    return;
  std::string path = folder / ("tenon-" + std::to_string(::geteuid()) + "-" + name + ".turn");
  file_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0 && (errno == EINTR || errno == EWOULDBLOCK)) {
    if (stop && stop())
      return; // nothing is measured any more
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string turnOf(const CudaProperties &device, int ordinal) {
  return "cuda-" + (device.uuid.empty() ? std::to_string(ordinal) : device.uuid);
}

Turn::~Turn() {
  if (file_ >= 0)
    ::close(file_);
}

} // namespace tenon::tuning
