// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tenon {

/// A program that measures something else the way we measure ourselves (scripts/peers/): it reads questions from its
/// standard input and writes answers to its standard output, each a JSON object on a line of its own, one answer to a
/// question. It says something first, without being asked: greeting().
///
/// What it writes to the standard error stream is kept, and its end is told when it dies.
class PeerProcess {
public:
  using Json = nlohmann::ordered_json;

  /// Starts it; the program is looked up in PATH. Throws Error when that is not possible, or when no greeting comes
  /// within `seconds`.
  PeerProcess(std::vector<std::string> command, double seconds);
  /// Closes its input, gives it two seconds to end by itself, and ends it.
  ~PeerProcess();
  PeerProcess(const PeerProcess &) = delete;
  PeerProcess &operator=(const PeerProcess &) = delete;

  const Json &greeting() const { return *greeting_; }

  /// Throws Error when no answer comes within `seconds` or it is not one. The process is ended then: what it says later
  /// would be taken for the answer to the next question.
  Json ask(const Json &question, double seconds);
  bool alive() const { return pid_ > 0; }
  /// Once it is not: the signal that ended it (SIGKILL where it was ours), or 0.
  int endedBySignal() const { return signal_; }
  bool timedOut() const { return timedOut_; }

private:
  void start();
  Json readAnswer(double seconds);
  [[noreturn]] void giveUp(const std::string &why);
  void end(bool atOnce) noexcept;
  std::string lastWords() const;

  std::vector<std::string> command_;
  pid_t pid_ = -1;
  int signal_ = 0;
  bool timedOut_ = false;
  int toChild_ = -1, fromChild_ = -1;
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> errors_; ///< without a name
  std::string unread_;
  std::unique_ptr<Json> greeting_;
};

} // namespace tenon
