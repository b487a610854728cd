// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "PeerLibrary.h"

#include "tenon/measure/GpuRounds.h"

#include <map>
#include <string>

namespace tenon::tool {

/// The processes of scripts/peers/gpu_peers.py, one a framework. All but one are idle at any time.
class GpuPeers {
public:
  /// Starts those of the frameworks ("torch", "jax"). `script` empty: the one that came with the program; throws Error
  /// when it is not found.
  explicit GpuPeers(std::string script, const std::vector<std::string> &frameworks = {"torch", "jax"});

  PeerReady prepare(const std::string &peer, const Json &description);
  /// Seconds per launch of what was made ready last; throws Error.
  double burst(const std::string &peer);
  /// The same of any peer that was made ready for the case it was asked for last, with a burst of that length.
  double burst(const std::string &peer, const BurstLength &length);

  /// Of each framework, or why it is not there.
  Json versions() const;

private:
  PeerLibrary &frameworkOf(const std::string &peer);

  std::string script_;
  std::map<std::string, PeerLibrary> frameworks_;
};

} // namespace tenon::tool
