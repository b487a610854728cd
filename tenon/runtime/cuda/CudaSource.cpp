// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/CudaSource.h"

#include "tenon/base/Error.h"

#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string_view>

namespace tenon::cuda {
namespace {

using Program = struct NvrtcProgram *;

struct Nvrtc {
  int (*create)(Program *, const char *source, const char *name, int headers, const char *const *, const char *const *);
  int (*destroy)(Program *);
  int (*compile)(Program, int options, const char *const *);
  int (*logSize)(Program, size_t *);
  int (*log)(Program, char *);
  int (*ptxSize)(Program, size_t *);
  int (*ptx)(Program, char *);
  const char *(*errorText)(int);
  std::string reason; ///< why it cannot be used

  Nvrtc() : reason(open()) {}

private:
  static void *openLibrary() {
    if (const char *chosen = std::getenv("TENON_NVRTC"); chosen && *chosen)
      return std::string_view(chosen) == "none" ? nullptr : ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    for (const char *name :
         {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"})
      if (void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
        return library;
    return nullptr;
  }

  std::string open() {
    void *library = openLibrary();
    if (!library)
      return "libnvrtc is not found (it comes with the CUDA toolkit; TENON_NVRTC names it)";
    const char *missing = nullptr;
    auto find = [&](auto *&slot, const char *name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(library, name));
      if (!slot)
        missing = name;
    };
    find(create, "nvrtcCreateProgram");
    find(destroy, "nvrtcDestroyProgram");
    find(compile, "nvrtcCompileProgram");
    find(logSize, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(ptxSize, "nvrtcGetPTXSize");
    find(ptx, "nvrtcGetPTX");
    find(errorText, "nvrtcGetErrorString");
    return missing ? std::string("the libnvrtc found has no ") + missing : "";
  }
};

const Nvrtc &nvrtc() {
  static const Nvrtc &only = *new Nvrtc();
  return only;
}

/// A text that NVRTC gives in two calls, with its closing zero.
std::string textOf(Program program, int (*size)(Program, size_t *), int (*get)(Program, char *)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes < 2)
    return "";
  std::string text(bytes, '\0');
  if (get(program, text.data()) != 0)
    return "";
  text.resize(bytes - 1);
  return text;
}

} // namespace

std::string whyNoNvrtc() { return nvrtc().reason; }

std::string compileCudaSource(const std::string &source, const std::string &name, const std::string &architecture) {
  const Nvrtc &api = nvrtc();
  if (!api.reason.empty())
    throw Error("CUDA C++ cannot be compiled: " + api.reason);
  Program program = nullptr;
  if (int failure = api.create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr))
    throw Error("CUDA C++ cannot be compiled: " + std::string(api.errorText(failure)));
  std::unique_ptr<Program, void (*)(Program *)> owner(&program, [](Program *p) { nvrtc().destroy(p); });
  std::string target = "--gpu-architecture=compute_" + architecture.substr(architecture.find('_') + 1);
  const char *options[] = {target.c_str(), "--std=c++17", "--generate-line-info"};
  int failure = api.compile(program, static_cast<int>(std::size(options)), options);
  if (failure) {
    std::string log = textOf(program, api.logSize, api.log);
    throw Error(name + " does not compile: " + (log.empty() ? api.errorText(failure) : log));
  }
  std::string ptx = textOf(program, api.ptxSize, api.ptx);
  if (ptx.empty())
    throw Error(name + " compiles to nothing");
  return ptx;
}

} // namespace tenon::cuda
