// SPDX-License-Identifier: Apache-2.0
#include "GpuPeers.h"

#include "GpuMachine.h"

#include "tenon/base/Error.h"

#include <filesystem>
#include <future>

namespace tenon::tool {
namespace {

// Generous: importing a framework on a cold disk, compiling with a search for the best settings.
constexpr double greetingSeconds = 120, prepareSeconds = 180, burstSeconds = 30;
constexpr int maxStarts = 3;

std::string findScript() {
  namespace fs = std::filesystem;
  fs::path here = programDirectory();
  for (const char *place : {"../scripts", "../../scripts", "../share/tenon"}) {
    fs::path script = here / place / "peers" / "gpu_peers.py";
    std::error_code ignored;
    if (fs::is_regular_file(script, ignored))
      return fs::weakly_canonical(script, ignored).string();
  }
  throw Error("scripts/peers/gpu_peers.py is not beside the program: name it with --peer-script");
}

} // namespace

GpuPeers::GpuPeers(std::string script, const std::vector<std::string> &frameworks)
    : script_(script.empty() ? findScript() : std::move(script)) {
  // All at once: importing a framework takes seconds.
  std::vector<std::future<void>> starting;
  for (const std::string &name : frameworks)
    frameworks_[name];
  for (auto &[name, framework] : frameworks_)
    starting.push_back(std::async(std::launch::async, [this, &name = name, &framework = framework] {
      start(name, framework);
    }));
  for (std::future<void> &one : starting)
    one.get();
}

void GpuPeers::start(const std::string &name, Framework &framework) const {
  ++framework.starts;
  try {
    framework.process = std::make_unique<PeerProcess>(std::vector<std::string>{"python3", script_, name},
                                                      greetingSeconds);
    const Json &greeting = framework.process->greeting();
    framework.versions = greeting.value("versions", Json::object());
    if (greeting.contains("missing"))
      framework.versions["missing"] = greeting["missing"];
    framework.why.clear();
  } catch (const Error &error) {
    framework.process.reset();
    framework.why = error.what();
    framework.versions = {{"missing", error.what()}};
  }
}

Json GpuPeers::versions() const {
  Json all = Json::object();
  for (const auto &[name, framework] : frameworks_)
    all[name] = framework.versions;
  return all;
}

GpuPeers::Framework &GpuPeers::frameworkOf(const std::string &peer) {
  std::string name = peer == "jax" ? "jax" : "torch";
  Framework &framework = frameworks_[name];
  bool died = framework.process && !framework.process->alive();
  if (died && framework.starts < maxStarts)
    start(name, framework);
  return framework;
}

GpuPeers::Ready GpuPeers::prepare(const std::string &peer, const Json &description) {
  Framework &framework = frameworkOf(peer);
  if (!framework.process)
    return {"failed", framework.why};
  try {
    Json answer = framework.process->ask({{"case", description}, {"peer", peer}}, prepareSeconds);
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

double GpuPeers::askForBurst(const std::string &peer, const Json &question) {
  Framework &framework = frameworkOf(peer);
  if (!framework.process)
    throw Error(framework.why);
  Json answer = framework.process->ask(question, burstSeconds);
  if (!answer.contains("ms") || !answer["ms"].is_number())
    throw Error(answer.value("error", "the peer answered " + answer.dump()));
  return answer["ms"].get<double>() * 1e-3;
}

double GpuPeers::burst(const std::string &peer) { return askForBurst(peer, {{"burst", true}}); }

double GpuPeers::burst(const std::string &peer, const BurstLength &length) {
  return askForBurst(peer, {{"burst", true},
                            {"peer", peer},
                            {"length_ms", length.seconds * 1e3},
                            {"untimed", length.untimed}});
}

} // namespace tenon::tool
