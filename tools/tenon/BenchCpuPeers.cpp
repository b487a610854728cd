// SPDX-License-Identifier: Apache-2.0
#include "BenchCpuPeers.h"

#include "GpuMachine.h"

#include <filesystem>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

// Generous: importing PyTorch on a cold disk, compiling C++ on a busy machine, one large product on one thread.
constexpr PeerLibrary::Patience patience{.greeting = 180, .prepare = 400, .burst = 200};
constexpr double compileSeconds = 3600;

/// Beside the program's own folder: build/bin/tenon, build/peers-venv. Not resolved: where the link leads, nothing is
/// installed.
std::string findPython() {
  fs::path python = fs::path(programDirectory()).parent_path() / "peers-venv" / "bin" / "python3";
  std::error_code ignored;
  return fs::exists(python, ignored) ? python.string() : std::string();
}

} // namespace

CpuPeers::CpuPeers(std::string script, std::string python)
    : script_(script.empty() ? findPeerScript("cpu_peers.py") : std::move(script)),
      python_(python.empty() ? findPython() : std::move(python)) {
  if (python_.empty())
    whyNone_ = "there is no virtual environment with PyTorch beside the program: `make peers` makes one in the "
               "build folder, and --peer-python names another";
}

void CpuPeers::start(int threads) {
  libraries_.clear();
  if (whyNone_.empty())
    for (const char *name : {"torch", "numpy"})
      libraries_[name].start({python_, script_, name, std::to_string(threads)}, patience);
}

void CpuPeers::compile(const Json &descriptions) {
  if (!whyNone_.empty() || descriptions.empty())
    return;
  PeerLibrary &library = libraryOf("torch_compile");
  if (library.versions().contains("missing"))
    return;
  try {
    library.ask({{"compile", descriptions}}, compileSeconds);
  } catch (const Error &) {
    // Each case is compiled when it is made ready, then, by a process that is started again.
  }
}

Json CpuPeers::versions() const {
  Json all = Json::object();
  for (const auto &[name, library] : libraries_)
    all[name] = library.versions();
  return all;
}

PeerLibrary &CpuPeers::libraryOf(const std::string &peer) {
  return libraries_[peer == "numpy" || peer == "openblas" ? "numpy" : "torch"];
}

PeerReady CpuPeers::prepare(const std::string &peer, const Json &description) {
  if (!whyNone_.empty())
    return {"not installed", whyNone_};
  return libraryOf(peer).prepare(peer, description);
}

double CpuPeers::burst(const std::string &peer) { return libraryOf(peer).burst({{"burst", true}}); }

} // namespace tenon::tool
