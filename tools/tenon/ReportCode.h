// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Options.h"

#include <string>
#include <vector>

/// A kernel's source beside what it becomes, for the report's viewer.
namespace tenon::tool {

struct CodeLine {
  std::string text;
  unsigned source = 0; ///< the line it came from; 0: none, or another file's
};

struct Listing {
  std::string phase, title;
  std::vector<CodeLine> lines;
};

struct KernelCode {
  std::string label, file; ///< "softmax f32 cpu", "tenon/kernels/softmax/Kernel.cpp"
  unsigned firstLine = 1;
  std::vector<std::string> source; ///< empty where the file is not at hand
  std::vector<Listing> listings;
};

/// MLIR with loc(...) behind its ops: without them, and each line with the line of `file` it came from.
std::vector<CodeLine> linesOfMlir(const std::string &text, const std::string &file);
/// Assembly or PTX: .loc directives are left out and tell the lines of what follows them.
std::vector<CodeLine> linesOfAssembly(const std::string &text, const std::string &file);

/// Compiles a kernel of the zoo for a CPU, or for a GPU that need not be there. Throws Error.
KernelCode codeOf(const zoo::Entry &entry, std::vector<int64_t> shape, DType dtype, const Params &params, bool isGpu,
                  const std::string &architecture);

} // namespace tenon::tool
