// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"

#include "tenon/measure/PeerProcess.h"

#include <map>
#include <memory>
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

  /// What became of a peer that was to be made ready.
  struct Ready {
    std::string status; ///< "ready", "not installed", "none" (there is no such peer), "failed"
    std::string detail; ///< which variant, or why not
  };
  Ready prepare(const std::string &peer, const Json &description);
  /// Seconds per call of what was made ready last; throws Error.
  double burst(const std::string &peer);

  /// Of each library, or why it is not there.
  Json versions() const;

private:
  struct Library {
    std::unique_ptr<PeerProcess> process;
    std::string why; ///< it could not be started
    int starts = 0;
    Json versions;
  };
  Library &libraryOf(const std::string &peer);
  void start(const std::string &name, Library &library) const;

  std::string script_, python_, whyNone_;
  int threads_ = 1;
  std::map<std::string, Library> libraries_;
};

} // namespace tenon::tool
