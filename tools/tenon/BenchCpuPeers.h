// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "PeerLibrary.h"

#include <map>
#include <string>

namespace tenon::tool {

/// The processes of scripts/peers/cpu_peers.py, one a library: how many threads it may use, each learns when it starts.
class CpuPeers {
public:
  /// Nothing is started yet. Empty: the script that came with the program, and the Python of the virtual environment
  /// that `make peers` has made. Throws Error when the script is not found.
  CpuPeers(std::string script, std::string python);

  /// Why nobody can be asked; empty if somebody can.
  const std::string &whyNone() const { return whyNone_; }
  /// Ends the processes and starts others, all of which may use so many threads.
  void start(int threads);
  void end() { libraries_.clear(); }
  /// Lets torch.compile compile all cases at once; those that fail are told of when they are made ready.
  void compile(const Json &descriptions);

  PeerReady prepare(const std::string &peer, const Json &description);
  /// Seconds per call of what was made ready last; throws Error.
  double burst(const std::string &peer);

  /// Of each library, or why it is not there.
  Json versions() const;

private:
  PeerLibrary &libraryOf(const std::string &peer);

  std::string script_, python_, whyNone_;
  std::map<std::string, PeerLibrary> libraries_;
};

} // namespace tenon::tool
