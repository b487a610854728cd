// SPDX-License-Identifier: Apache-2.0
#include "BenchCpuPeers.h"

#include "GpuMachine.h"

#include "tenon/base/Error.h"

#include <filesystem>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

// Generous: importing PyTorch on a cold disk, compiling C++ on a busy machine, one large product on one thread.
constexpr double greetingSeconds = 180, prepareSeconds = 400, burstSeconds = 200;
constexpr int maxStarts = 3;

std::string findScript() {
  fs::path here = programDirectory();
  for (const char *place : {"../scripts", "../../scripts", "../share/tenon"}) {
    fs::path script = here / place / "peers" / "cpu_peers.py";
    std::error_code ignored;
    if (fs::is_regular_file(script, ignored))
      return fs::weakly_canonical(script, ignored).string();
  }
  throw Error("scripts/peers/cpu_peers.py is not beside the program: name it with --peer-script");
}

/// Beside the program's own folder: build/bin/tenon, build/peers-venv. Not resolved: where the link leads, nothing is
/// installed.
std::string findPython() {
  fs::path python = fs::path(programDirectory()).parent_path() / "peers-venv" / "bin" / "python3";
  std::error_code ignored;
  return fs::exists(python, ignored) ? python.string() : std::string();
}

} // namespace

CpuPeers::CpuPeers(std::string script, std::string python)
    : script_(script.empty() ? findScript() : std::move(script)),
      python_(python.empty() ? findPython() : std::move(python)) {
  if (python_.empty())
    whyNone_ = "there is no virtual environment with PyTorch beside the program: `make peers` makes one";
}

void CpuPeers::start(int threads) {
  libraries_.clear();
  threads_ = threads;
  if (whyNone_.empty())
    for (const char *name : {"torch", "numpy"})
      start(name, libraries_[name]);
}

void CpuPeers::start(const std::string &name, Library &library) const {
  ++library.starts;
  try {
    library.process = std::make_unique<PeerProcess>(
        std::vector<std::string>{python_, script_, name, std::to_string(threads_)}, greetingSeconds);
    const Json &greeting = library.process->greeting();
    library.versions = greeting.value("versions", Json::object());
    if (greeting.contains("missing"))
      library.versions["missing"] = greeting["missing"];
    library.why.clear();
  } catch (const Error &error) {
    library.process.reset();
    library.why = error.what();
    library.versions = {{"missing", error.what()}};
  }
}

Json CpuPeers::versions() const {
  Json all = Json::object();
  for (const auto &[name, library] : libraries_)
    all[name] = library.versions;
  return all;
}

CpuPeers::Library &CpuPeers::libraryOf(const std::string &peer) {
  std::string name = peer == "numpy" || peer == "openblas" ? "numpy" : "torch";
  Library &library = libraries_[name];
  bool died = library.process && !library.process->alive();
  if (died && library.starts < maxStarts)
    start(name, library);
  return library;
}

CpuPeers::Ready CpuPeers::prepare(const std::string &peer, const Json &description) {
  if (!whyNone_.empty())
    return {"not installed", whyNone_};
  Library &library = libraryOf(peer);
  if (!library.process)
    return {"failed", library.why};
  try {
    Json answer = library.process->ask({{"case", description}, {"peer", peer}}, prepareSeconds);
    if (answer.value("ready", false))
      return {"ready", answer.value("variant", "")};
    const char *status = answer.value("missing", false) ? "not installed"
                         : answer.value("none", false)  ? "none"
                                                        : "failed";
    return {status, answer.value("error", "no reason given")};
  } catch (const Error &error) {
    return {"failed", error.what()};
  }
}

double CpuPeers::burst(const std::string &peer) {
  Library &library = libraryOf(peer);
  if (!library.process)
    throw Error(library.why);
  Json answer = library.process->ask({{"burst", true}}, burstSeconds);
  if (!answer.contains("ms") || !answer["ms"].is_number())
    throw Error(answer.value("error", "the peer answered " + answer.dump()));
  return answer["ms"].get<double>() * 1e-3;
}

} // namespace tenon::tool
