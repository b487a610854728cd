// SPDX-License-Identifier: Apache-2.0
//
// An NVRTC for tests: a source that has "error" in it does not compile; any other becomes PTX that quotes its options.
#include <cstring>
#include <string>

namespace {
struct Program {
  std::string source, log, ptx;
};
void give(const std::string &text, char *to) { std::memcpy(to, text.c_str(), text.size() + 1); }
} // namespace

#pragma GCC visibility push(default)
extern "C" {
int nvrtcCreateProgram(Program **program, const char *source, const char *, int, const char *const *,
                       const char *const *) {
  *program = new Program{source, "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program **program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  if (program->source.find("error") != std::string::npos) {
    program->log = "classic.cu(3): error: expected a \";\"";
    return 6;
  }
  program->ptx = ".version 8.0\n";
  for (int i = 0; i < count; ++i)
    program->ptx += std::string("// ") + options[i] + "\n";
  for (const char *name : {"gelu_tanh", "softmax"}) // the fake driver looks for the names of kernels
    program->ptx += std::string(".visible .entry ") + name + "(\n)\n";
  return 0;
}
int nvrtcGetProgramLogSize(Program *program, size_t *bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program *program, char *to) {
  give(program->log, to);
  return 0;
}
int nvrtcGetPTXSize(Program *program, size_t *bytes) {
  *bytes = program->ptx.size() + 1;
  return 0;
}
int nvrtcGetPTX(Program *program, char *to) {
  give(program->ptx, to);
  return 0;
}
const char *nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
}
#pragma GCC visibility pop
