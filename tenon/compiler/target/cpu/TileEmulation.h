// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Loader.h"

namespace tenon::cpu {

/// The functions that stand in for AMX's instructions (AmxTiles.h), for the linker. They do what the manual says, number
/// by number: tiles have the shape they were configured with, bf16 products are added in the instruction's order and
/// subnormal numbers count as zero. An instruction that the processor would refuse ends the process with a message.
std::span<const ExternalSymbol> tileEmulation();

} // namespace tenon::cpu
