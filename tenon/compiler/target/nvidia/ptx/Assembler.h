// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's assembler, where it is installed: what a kernel costs in registers and memory, and what ptxas says of it.
// Tenon does not need it to run a kernel (the driver assembles PTX); tests and reports do.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tenon::nvidia {

struct AssemblyReport {
  int registers = 0; // of one thread; the largest of the module's kernels, as are the others
  int stackBytes = 0;
  int spillStoreBytes = 0;
  int spillLoadBytes = 0;
  int sharedBytes = 0; // static; dynamic shared memory is the launch's
  int barriers = 0;
  std::vector<std::string> warnings; // each as ptxas wrote it, with its number (C7508, C7510)
  std::string cubin;                 // the machine code
  std::string sass;                  // its text; empty where there is no disassembler, and then:
  std::string noSass;                // why not
};

/// Whether there is a ptxas: in the PATH or in /usr/local/cuda/bin.
bool hasAssembler();

/// Nothing where there is no ptxas. Throws InternalError with what ptxas wrote if it refuses the PTX, or takes longer
/// than two minutes.
std::optional<AssemblyReport> assemble(const std::string &ptx, const std::string &architecture);

} // namespace tenon::nvidia
