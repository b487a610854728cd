// SPDX-License-Identifier: Apache-2.0
//
// A driver from before there were memory pools.
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) { return 0; }
extern "C" __attribute__((visibility("default"))) int cuDriverGetVersion(int *version) {
  *version = 10020;
  return 0;
}
