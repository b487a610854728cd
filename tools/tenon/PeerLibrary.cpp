// SPDX-License-Identifier: Apache-2.0
#include "PeerLibrary.h"

#include "GpuMachine.h"

#include "tenon/base/Error.h"

#include <filesystem>

namespace tenon::tool {

std::string findPeerScript(const std::string &name) {
  namespace fs = std::filesystem;
  fs::path here = programDirectory();
  for (const char *place : {"../scripts", "../../scripts", "../share/tenon"}) {
    fs::path script = here / place / "peers" / name;
    std::error_code ignored;
    if (fs::is_regular_file(script, ignored))
      return fs::weakly_canonical(script, ignored).string();
  }
  throw Error("scripts/peers/" + name + " is not beside the program: name it with --peer-script");
}

void PeerLibrary::start(const std::vector<std::string> &command, const Patience &patience) {
  command_ = command;
  patience_ = patience;
  start();
}

void PeerLibrary::start() {
  ++starts_;
  try {
    process_ = std::make_unique<PeerProcess>(command_, patience_.greeting);
    const Json &greeting = process_->greeting();
    versions_ = greeting.value("versions", Json::object());
    if (greeting.contains("missing"))
      versions_["missing"] = greeting["missing"];
    why_.clear();
  } catch (const Error &error) {
    process_.reset();
    why_ = error.what();
    versions_ = {{"missing", error.what()}};
  }
}

void PeerLibrary::revive() {
  constexpr int maxStarts = 3;
  if (process_ && !process_->alive() && starts_ < maxStarts)
    start();
}

PeerReady PeerLibrary::prepare(const std::string &peer, const Json &description) {
  revive();
  if (!process_)
    return {"failed", why_};
  try {
    Json answer = process_->ask({{"case", description}, {"peer", peer}}, patience_.prepare);
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

Json PeerLibrary::ask(const Json &question, double seconds) {
  revive();
  if (!process_)
    throw Error(why_);
  return process_->ask(question, seconds);
}

double PeerLibrary::burst(const Json &question) {
  Json answer = ask(question, patience_.burst);
  if (!answer.contains("ms") || !answer["ms"].is_number())
    throw Error(answer.value("error", "the peer answered " + answer.dump()));
  return answer["ms"].get<double>() * 1e-3;
}

} // namespace tenon::tool
