// SPDX-License-Identifier: Apache-2.0
// Prints CPUID leaves that do not change from one moment to the next, and whether there are AMX's tiles.
#include <cpuid.h>
#include <stdio.h>

int main(void) {
  const unsigned leaves[][2] = {{0, 0}, {7, 0}, {7, 1}, {0x1D, 0}, {0x1D, 1}, {0x1E, 0}, {0x80000002, 0}};
  unsigned a, b, c, d;
  for (unsigned i = 0; i < sizeof(leaves) / sizeof(*leaves); ++i) {
    __cpuid_count(leaves[i][0], leaves[i][1], a, b, c, d);
    printf("leaf %x.%x: %x %x %x %x\n", leaves[i][0], leaves[i][1], a, b, c, d);
  }
  __cpuid_count(7, 0, a, b, c, d);
  printf("%s\n", d >> 24 & 1 ? "tiles" : "no tiles");
}
