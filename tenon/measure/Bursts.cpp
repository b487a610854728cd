// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Bursts.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace tenon {

Bursts::Bursts(std::function<void()> run, double seconds, std::function<Clock::time_point()> now)
    : run_(std::move(run)), now_(std::move(now)), most_(3 * seconds) {
  constexpr double longCall = 0.1, longestTwice = 1, shortestCall = 1e-7;
  constexpr int leastCalls = 3;
  one_ = time(); // compiled, pages touched: may take long where the others do not
  if (one_ < longestTwice)
    one_ = time();
  if (one_ < longCall) {
    double together = one_;
    for (int call = 1; call < leastCalls || together < seconds / 4; ++call) {
      double taken = time();
      together += taken;
      one_ = std::min(one_, taken);
    }
  }
  calls_ = static_cast<size_t>(std::clamp(seconds / std::max(one_, shortestCall), 1.0, 1e6));
  short_ = one_ < 5e-3;
}

double Bursts::operator()() {
  if (short_)
    run_(); // threads wake up, and what the other one left in the caches goes
  auto start = now_();
  size_t done = 0;
  while (done < calls_ && (done == 0 || secondsSince(start) < most_)) {
    run_();
    ++done;
  }
  double each = secondsSince(start) / static_cast<double>(done);
  std::this_thread::sleep_for(std::chrono::milliseconds(2)); // our threads sleep, as the peers' do when it is our turn
  return each;
}

double Bursts::time() {
  auto start = now_();
  run_();
  return secondsSince(start);
}

double Bursts::secondsSince(Clock::time_point start) const {
  return std::chrono::duration<double>(now_() - start).count();
}

} // namespace tenon
