// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"

#include "tenon/measure/PeerProcess.h"

#include <memory>
#include <string>
#include <vector>

namespace tenon::tool {

/// A script of scripts/peers that came with the program; throws Error when it is not found.
std::string findPeerScript(const std::string &name);

/// What became of a peer that was to be made ready.
struct PeerReady {
  std::string status; ///< "ready", "not installed", "none" (there is no such peer), "failed"
  std::string detail; ///< which variant, or why not
};

/// A library of others in a process of its own, which one of the scripts runs and which is asked by lines of JSON.
class PeerLibrary {
public:
  /// How long, in seconds, each step may take.
  struct Patience {
    double greeting, prepare, burst;
  };
  /// Starts the process; where that fails, questions are answered with the reason.
  void start(const std::vector<std::string> &command, const Patience &patience);
  PeerReady prepare(const std::string &peer, const Json &description);
  /// Anything else; throws Error where nobody answers in time.
  Json ask(const Json &question, double seconds);
  /// Seconds of one call: what the script answers in `ms`. Throws Error.
  double burst(const Json &question);
  /// Of the library and what it needs, or why it is not there.
  const Json &versions() const { return versions_; }

private:
  void start();
  void revive(); ///< if it has died; a few times at most

  std::vector<std::string> command_;
  Patience patience_{};
  std::unique_ptr<PeerProcess> process_;
  std::string why_; ///< it could not be started
  int starts_ = 0;
  Json versions_;
};

} // namespace tenon::tool
