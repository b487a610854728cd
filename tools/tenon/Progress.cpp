// SPDX-License-Identifier: Apache-2.0
#include "Progress.h"

#include "Terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tenon::tool {

Progress::Progress(size_t total) : total_(total) {}
Progress::~Progress() { clear(); }

void Progress::show(const std::string &what) {
  what_ = what;
  draw();
}

void Progress::advance() {
  done_ = std::min(done_ + 1, total_);
  draw();
}

void Progress::clear() {
  if (visible_)
    std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  visible_ = false;
}

void Progress::draw() {
  const Terminal &terminal = standardError();
  if (!terminal.interactive)
    return;
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::string count = fmt::format(" {:>{}}/{} ", done_, std::to_string(total_).size(), total_);
  std::string time = fmt::format(" {:.0f}s", elapsed.count());
  // The last column stays free: filling it makes some terminals wrap.
  size_t width = static_cast<size_t>(std::max(terminal.width - 1, 20));
  size_t barWidth = std::clamp<size_t>(width / 4, 8, 30);
  size_t filled = total_ ? barWidth * done_ / total_ : barWidth;
  std::string bar;
  for (size_t i = 0; i < barWidth; ++i)
    bar += i < filled ? (terminal.unicode ? "█" : "#") : (terminal.unicode ? "░" : "-");
  size_t used = barWidth + count.size() + time.size() + 2;
  std::string what = used < width ? shortened(what_, width - used, terminal.unicode) : "";
  fmt::print(stderr, "\r\033[K{}{}{}{}", styled(terminal, Style::good, bar), count, what,
             styled(terminal, Style::dim, time));
  std::fflush(stderr);
  visible_ = true;
}

} // namespace tenon::tool
