// SPDX-License-Identifier: Apache-2.0
#include "GpuPeers.h"

#include <future>

namespace tenon::tool {
namespace {

// Generous: importing a framework on a cold disk, compiling with a search for the best settings.
constexpr PeerLibrary::Patience patience{.greeting = 120, .prepare = 180, .burst = 30};

} // namespace

GpuPeers::GpuPeers(std::string script, const std::vector<std::string> &frameworks)
    : script_(script.empty() ? findPeerScript("gpu_peers.py") : std::move(script)) {
  // All at once: importing a framework takes seconds.
  std::vector<std::future<void>> starting;
  for (const std::string &name : frameworks)
    frameworks_[name];
  for (auto &[name, framework] : frameworks_)
    starting.push_back(std::async(std::launch::async, [this, &name = name, &framework = framework] {
      framework.start({"python3", script_, name}, patience);
    }));
  for (std::future<void> &one : starting)
    one.get();
}

Json GpuPeers::versions() const {
  Json all = Json::object();
  for (const auto &[name, framework] : frameworks_)
    all[name] = framework.versions();
  return all;
}

PeerLibrary &GpuPeers::frameworkOf(const std::string &peer) { return frameworks_[peer == "jax" ? "jax" : "torch"]; }

PeerReady GpuPeers::prepare(const std::string &peer, const Json &description) {
  return frameworkOf(peer).prepare(peer, description);
}

double GpuPeers::burst(const std::string &peer) { return frameworkOf(peer).burst({{"burst", true}}); }

double GpuPeers::burst(const std::string &peer, const BurstLength &length) {
  return frameworkOf(peer).burst({{"burst", true},
                                  {"peer", peer},
                                  {"length_ms", length.seconds * 1e3},
                                  {"untimed", length.untimed}});
}

} // namespace tenon::tool
