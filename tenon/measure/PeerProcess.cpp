// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/PeerProcess.h"

#include "tenon/base/Error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double secondsUntil(Clock::time_point moment) {
  return std::chrono::duration<double>(moment - Clock::now()).count();
}

/// Two ends, neither of which a child inherits by accident.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
};

/// A write to a process that is gone shall be an error, not the end of this one. The signal is held back from this
/// thread and taken away; how the program treats it otherwise, and other threads, are left alone.
class HoldBrokenPipes {
public:
  HoldBrokenPipes() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    wasPending_ = sigismember(&pending, SIGPIPE) != 0;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~HoldBrokenPipes() {
    constexpr timespec atOnce{0, 0};
    while (!wasPending_ && sigtimedwait(&signal_, nullptr, &atOnce) < 0 && errno == EINTR)
      ;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HoldBrokenPipes(const HoldBrokenPipes &) = delete;
  HoldBrokenPipes &operator=(const HoldBrokenPipes &) = delete;

private:
  sigset_t signal_, before_;
  bool wasPending_ = false; ///< somebody else's
};

} // namespace

PeerProcess::PeerProcess(std::vector<std::string> command, double seconds) : command_(std::move(command)) {
  start();
  try {
    greeting_ = std::make_unique<Json>(readAnswer(seconds));
  } catch (...) {
    end(/*atOnce=*/true);
    throw;
  }
}

PeerProcess::~PeerProcess() { end(/*atOnce=*/false); }

void PeerProcess::start() {
  if (command_.empty())
    throw Error("which program is the peer?");
  std::vector<char *> arguments;
  for (std::string &word : command_)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Pipe questions, answers;
  errors_.reset(std::tmpfile());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, questions.read, 0);
  posix_spawn_file_actions_adddup2(&actions, answers.write, 1);
  if (errors_)
    posix_spawn_file_actions_adddup2(&actions, fileno(errors_.get()), 2);
  // A group of its own: what it starts itself (compilers) ends with it, and an interrupt of ours is not one of its.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  int failure = posix_spawnp(&pid_, command_[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(questions.read);
  ::close(answers.write);
  toChild_ = questions.write;
  fromChild_ = answers.read;
  if (failure) {
    pid_ = -1;
    end(/*atOnce=*/true);
    throw Error("cannot start '" + command_[0] + "': " + std::strerror(failure));
  }
  // Limits that this process set for itself are not meant for others.
  rlimit limit{};
  if (::prlimit(pid_, RLIMIT_DATA, nullptr, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::prlimit(pid_, RLIMIT_DATA, &limit, nullptr);
  }
}

PeerProcess::Json PeerProcess::ask(const Json &question, double seconds) {
  if (!alive())
    throw Error("'" + command_[0] + "' is not running any more");
  HoldBrokenPipes hold;
  std::string line = question.dump() + "\n";
  for (size_t at = 0; at < line.size();) {
    ssize_t written = ::write(toChild_, line.data() + at, line.size() - at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      giveUp("ended before its next question");
    at += static_cast<size_t>(written);
  }
  return readAnswer(seconds);
}

PeerProcess::Json PeerProcess::readAnswer(double seconds) {
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  size_t newline;
  while ((newline = unread_.find('\n')) == std::string::npos) {
    pollfd waiting{fromChild_, POLLIN, 0};
    double left = secondsUntil(deadline);
    int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(std::min(left, 3600.0) * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    timedOut_ = ready <= 0;
    if (timedOut_)
      giveUp("did not answer within " + std::to_string(static_cast<int>(seconds)) + " s");
    char buffer[4096];
    ssize_t count = ::read(fromChild_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      giveUp("ended without an answer");
    unread_.append(buffer, static_cast<size_t>(count));
  }
  std::string line = unread_.substr(0, newline);
  unread_.erase(0, newline + 1);
  Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object())
    giveUp("answered '" + line.substr(0, 200) + "', which is no JSON object");
  return answer;
}

void PeerProcess::giveUp(const std::string &why) {
  end(/*atOnce=*/true);
  std::string words = lastWords();
  throw Error("'" + command_[0] + "' " + why + (words.empty() ? "" : ": " + words));
}

void PeerProcess::end(bool atOnce) noexcept {
  for (int *handle : {&toChild_, &fromChild_})
    if (*handle >= 0) {
      ::close(*handle);
      *handle = -1;
    }
  if (pid_ <= 0)
    return;
  auto deadline = Clock::now() + std::chrono::seconds(2);
  int status = 0;
  while (!atOnce && ::waitpid(pid_, &status, WNOHANG) == 0) {
    atOnce = Clock::now() > deadline;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (atOnce) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  pid_ = -1;
}

/// The last line it wrote to the standard error stream.
std::string PeerProcess::lastWords() const {
  if (!errors_)
    return "";
  char buffer[2048];
  long size = std::fseek(errors_.get(), 0, SEEK_END) == 0 ? std::ftell(errors_.get()) : 0;
  if (std::fseek(errors_.get(), std::max(0L, size - static_cast<long>(sizeof buffer)), SEEK_SET) != 0)
    return "";
  std::string text(buffer, std::fread(buffer, 1, sizeof buffer, errors_.get()));
  text.erase(std::find_if(text.rbegin(), text.rend(), [](unsigned char c) { return !std::isspace(c); }).base(),
             text.end());
  size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

} // namespace tenon
