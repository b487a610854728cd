// SPDX-License-Identifier: Apache-2.0
//
// What lit runs before its tests, which use one cache directory: see the header.
#include "../unit/measure/OrdinaryCeilings.h"

int main() { keepOrdinaryCeilings(); }
