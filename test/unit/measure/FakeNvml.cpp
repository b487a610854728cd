// SPDX-License-Identifier: Apache-2.0
//
// A management library of the tests' own, with one GPU that is short of power until it is told otherwise.
#include <atomic>

#pragma GCC visibility push(default)
extern "C" {
static std::atomic<unsigned> clockNow = 1500; // the test sets it while another thread looks
/// 1980 MHz: nothing holds it back.
void fakenvmlSetClock(unsigned megahertz) { clockNow = megahertz; }
static std::atomic<unsigned> looks = 0;
/// How often everything was asked for, counted at the last question.
unsigned fakenvmlLooks() { return looks; }
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  static int gpu;
  *device = &gpu;
  return index == 0 ? 0 : 2;
}
int nvmlDeviceGetClockInfo(void *, int, unsigned *clock) { return *clock = clockNow, 0; }
int nvmlDeviceGetMaxClockInfo(void *, int, unsigned *clock) { return *clock = 1980, 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *reasons) {
  return *reasons = clockNow < 1980 ? 0x4 : 0, 0;
}
int nvmlDeviceGetPowerUsage(void *, unsigned *milliwatts) { return *milliwatts = 699000, 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *, unsigned *milliwatts) { return *milliwatts = 700000, 0; }
int nvmlDeviceGetTemperature(void *, int, unsigned *celsius) { return *celsius = 71, ++looks, 0; }
}
#pragma GCC visibility pop
