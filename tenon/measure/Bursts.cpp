// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Bursts.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

} // namespace

Bursts::Bursts(std::function<void()> run, double seconds) : run_(std::move(run)), most_(3 * seconds) {
  constexpr double longCall = 0.1, shortestCall = 1e-7;
  constexpr int leastCalls = 3;
  one_ = time(); // compiled, pages touched
  if (one_ < longCall) {
    one_ = time();
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
  auto start = Clock::now();
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
  auto start = Clock::now();
  run_();
  return secondsSince(start);
}

} // namespace tenon
