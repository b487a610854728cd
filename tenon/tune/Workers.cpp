// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Workers.h"

#include "tenon/base/Error.h"
#include "tenon/tune/Worker.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include <dlfcn.h>
#include <unistd.h>

namespace tenon {

namespace {
constexpr std::pair<Outcome::Status, std::string_view> statusNames[] = {
    {Outcome::Status::measured, "measured"}, {Outcome::Status::refused, "refused"},
    {Outcome::Status::wrong, "wrong"},       {Outcome::Status::crashed, "crashed"},
    {Outcome::Status::timedOut, "timed out"}, {Outcome::Status::outOfMemory, "out of memory"},
    {Outcome::Status::tooFast, "too fast"},
};
} // namespace

std::string_view nameOf(Outcome::Status status) {
  for (auto [value, name] : statusNames)
    if (value == status)
      return name;
  return "";
}

std::optional<Outcome::Status> parseStatus(std::string_view name) {
  for (auto [value, text] : statusNames)
    if (text == name)
      return value;
  return std::nullopt;
}

namespace tuning {
namespace {

using Json = PeerProcess::Json;
using Status = Outcome::Status;

/// The answer, or why there is none. A process that gave none is gone afterwards.
Json askOrFail(PeerProcess &process, const Json &question, double seconds, const char *doing, Status onError) {
  Json answer;
  try {
    answer = process.ask(question, seconds);
  } catch (const Error &error) {
    if (process.timedOut())
      throw Workers::Failure{
          Outcome::failed(Status::timedOut, std::string(doing) + " took more than " +
                                                std::to_string(static_cast<int>(seconds)) + " s")};
    int signal = process.endedBySignal();
    throw Workers::Failure{Outcome::failed(
        Status::crashed, std::string("the process ended while ") + doing +
                             (signal ? std::string(": ") + ::strsignal(signal) : std::string(": ") + error.what()))};
  }
  if (auto error = answer.find("error"); error != answer.end()) {
    std::string text = error->get<std::string>();
    bool memory = text.find("out of memory") != std::string::npos || text.find("cannot allocate") != std::string::npos;
    throw Workers::Failure{Outcome::failed(memory ? Status::outOfMemory : onError, text)};
  }
  return answer;
}

Outcome outcomeOf(const Json &timing) {
  Outcome outcome;
  outcome.status = Status::measured;
  outcome.seconds = timing.at("fastest");
  outcome.median = timing.at("median");
  outcome.trials = timing.at("trials");
  return outcome;
}

} // namespace

Workers::Workers(Options options, const Arena &arena, Target target, int device)
    : options_(std::move(options)), arena_(arena), target_(target), device_(device),
      slots_(static_cast<size_t>(std::max(options_.count, 1))) {
  if (options_.command.empty())
    options_.command = defaultCommand();
  options_.runsApart = options_.runsApart && options_.useDiskCache && slots_.size() > 1;
  ahead_.threads.resize(slots_.size());
  ahead_.busy.resize(slots_.size());
}

Workers::~Workers() {
  {
    std::lock_guard lock(ahead_.mutex);
    ahead_.open.clear();
  }
  for (std::thread &thread : ahead_.threads)
    if (thread.joinable())
      thread.join();
}

std::vector<std::string> Workers::defaultCommand() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void *>(&Workers::defaultCommand), &here) && here.dli_fname) {
    std::string file = here.dli_fname;
    size_t slash = file.rfind('/');
    std::string beside = (slash == std::string::npos ? "." : file.substr(0, slash)) + "/../bin/tenon";
    if (::access(beside.c_str(), X_OK) == 0)
      return {beside, "tune-worker"};
  }
  return {"tenon", "tune-worker"};
}

void Workers::ensure(Slot &slot) {
  if (slot.process && slot.process->alive())
    return;
  slot.jobs.clear();
  slot.process = std::make_unique<PeerProcess>(options_.command, options_.startSeconds);
  const Json &greeting = slot.process->greeting();
  if (greeting.value("worker", 0) != 1 || greeting.value("compiler", "") != compilerId()) {
    slot.process.reset();
    throw Error("'" + options_.command[0] + "' belongs to another build of Tenon, and what it measured would not hold "
                "for this one: name the right command in TuneOptions::worker");
  }
  Json question = {{"do", "setup"},
                   {"arena", arena_.path()},
                   {"bytes", arena_.bytes()},
                   {"words", arena_.words()},
                   {"addresses", arena_.addresses()},
                   {"target", nameOf(target_)},
                   {"device", device_},
                   {"memory", options_.memoryBytes},
                   {"yields", options_.runsApart && &slot != &slots_.front()}};
  if (images_)
    question["images"] = {{"first", images_->first->path()},
                          {"second", images_->second->path()},
                          {"wanted", images_->wanted->path()},
                          {"found", images_->found->path()},
                          {"outputs", toJson(images_->outputs)}};
  Json answer = slot.process->ask(question, options_.startSeconds);
  if (answer.contains("error"))
    throw Error("a worker cannot start: " + answer["error"].get<std::string>());
}

Workers::Compiled Workers::compileIn(Slot &slot, const Job &job, bool keep) {
  const CompileOptions &compile = job.options.compile;
  Json question = {{"do", "compile"},
                   {"job", job.number},
                   {"configuration", job.configuration.str()},
                   {"isa", compile.isa},
                   {"gpu", compile.gpu},
                   {"warps", compile.warps},
                   {"cluster", compile.cluster},
                   {"stages", compile.stages},
                   {"split", compile.split},
                   {"tail", compile.shareTail},
                   {"pingpong", compile.pingPong},
                   {"without", compile.without},
                   {"threads", job.options.threads},
                   {"disk_cache", options_.useDiskCache && compile.useDiskCache},
                   {"keep", keep},
                   {"ir", job.ir}};
  Compiled compiled;
  auto start = std::chrono::steady_clock::now();
  try {
    askOrFail(*slot.process, question, options_.compileSeconds, "compiling", Status::refused);
    if (keep)
      slot.jobs.insert(job.number);
  } catch (const Failure &failure) {
    compiled.failure = failure.outcome;
  }
  compiled.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

std::vector<Workers::Compiled> Workers::compile(const std::vector<const Job *> &jobs) {
  std::vector<Compiled> all(jobs.size());
  if (options_.runsApart) {
    compileAhead(jobs);
    for (size_t i = 0; i < jobs.size(); ++i)
      all[i] = await(*jobs[i]);
    return all;
  }
  size_t together = std::min(slots_.size(), jobs.size());
  for (std::atomic<size_t> next = 0; next < jobs.size();) {
    for (size_t s = 0; s < together; ++s)
      ensure(slots_[s]);
    // Whoever is done takes the next one; a worker that a candidate took along is replaced in the next round.
    std::vector<std::thread> threads;
    for (size_t s = 0; s < together; ++s)
      threads.emplace_back([&, s] {
        while (slots_[s].process->alive()) {
          size_t i = next++;
          if (i >= jobs.size())
            return;
          all[i] = compileIn(slots_[s], *jobs[i]);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  for (Compiled &one : all)
    one.seconds /= static_cast<double>(together);
  return all;
}

void Workers::compileAhead(const std::vector<const Job *> &jobs) {
  {
    std::lock_guard lock(ahead_.mutex);
    ahead_.open.insert(ahead_.open.begin(), jobs.rbegin(), jobs.rend());
  }
  startThreads();
}

/// Workers are started by the caller's thread, with which they end.
void Workers::startThreads() {
  for (size_t s = 1; s < slots_.size(); ++s) {
    {
      std::lock_guard lock(ahead_.mutex);
      if (ahead_.busy[s] || ahead_.open.empty())
        continue;
    }
    if (ahead_.threads[s].joinable())
      ahead_.threads[s].join();
    ensure(slots_[s]);
    {
      std::lock_guard lock(ahead_.mutex);
      ahead_.busy[s] = true;
    }
    ahead_.threads[s] = std::thread([this, s] { work(s); });
  }
}

void Workers::work(size_t slot) {
  std::unique_lock lock(ahead_.mutex);
  while (!ahead_.open.empty() && slots_[slot].process->alive()) {
    const Job *job = ahead_.open.back();
    ahead_.open.pop_back();
    lock.unlock();
    Compiled compiled = compileIn(slots_[slot], *job, /*keep=*/false);
    compiled.seconds /= static_cast<double>(slots_.size() - 1);
    lock.lock();
    ahead_.done.emplace(job->number, std::move(compiled));
    ahead_.changed.notify_all();
  }
  ahead_.busy[slot] = false;
  ahead_.changed.notify_all();
}

Workers::Compiled Workers::await(const Job &job) {
  for (;;) {
    startThreads(); // in the place of those whose worker a candidate took along
    std::unique_lock lock(ahead_.mutex);
    auto isDone = [&] { return ahead_.done.contains(job.number); };
    ahead_.changed.wait(lock, [&] {
      return isDone() || (!ahead_.open.empty() && std::count(ahead_.busy.begin(), ahead_.busy.end(), true) <
                                                      static_cast<ptrdiff_t>(slots_.size()) - 1);
    });
    if (isDone())
      return std::move(ahead_.done.extract(job.number).mapped());
  }
}

Workers::Slot &Workers::slotOf(const Job &job) {
  for (Slot &slot : std::span(slots_).first(options_.runsApart ? 1 : slots_.size())) // the others are compilers' then
    if (slot.process && slot.process->alive() && slot.jobs.contains(job.number))
      return slot;
  Slot &slot = slots_.front();
  ensure(slot);
  if (auto failure = compileIn(slot, job).failure)
    throw Failure{*failure};
  return slot;
}

double Workers::run(const Job &job) {
  Slot &slot = slotOf(job);
  try {
    return askOrFail(*slot.process, {{"do", "run"}, {"job", job.number}}, options_.runSeconds, "running",
                     Status::wrong)
        .at("seconds");
  } catch (const Failure &) {
    // On a GPU the context may be lost, on the CPU the heap: nothing that runs there now would say anything.
    slot.process.reset();
    throw;
  }
}

std::vector<Outcome> Workers::time(const std::vector<const Job *> &jobs, const TimeRequest &request) {
  Slot &slot = slotOf(*jobs.front());
  Json numbers = Json::array();
  for (const Job *job : jobs) {
    if (!slot.jobs.contains(job->number))
      if (auto failure = compileIn(slot, *job).failure)
        throw Failure{*failure};
    numbers.push_back(job->number);
  }
  Json answer;
  try {
    answer = askOrFail(*slot.process,
                       {{"do", "time"},
                        {"jobs", numbers},
                        {"seconds", request.seconds},
                        {"check", request.check},
                        {"deterministic", request.deterministic}},
                       options_.runSeconds + request.seconds * 4, "being timed", Status::wrong);
  } catch (const Failure &) {
    slot.process.reset();
    throw;
  }
  std::vector<Outcome> outcomes;
  for (const Json &timing : answer.at("timings"))
    outcomes.push_back(outcomeOf(timing));
  return outcomes;
}

Outcome Workers::examine(const Job &job, const ExamineRequest &request) {
  Slot &slot = slotOf(job);
  Json answer;
  try {
    answer = askOrFail(*slot.process,
                       {{"do", "examine"},
                        {"job", job.number},
                        {"seconds", request.seconds},
                        {"slow", request.slow},
                        {"wanted", request.hasWanted},
                        {"deterministic", request.deterministic},
                        {"tolerances", request.tolerances},
                        {"relatives", request.relatives}},
                       options_.runSeconds + request.seconds * 4, "running", Status::wrong);
  } catch (const Failure &) {
    slot.process.reset();
    throw;
  }
  if (auto wrong = answer.find("wrong"); wrong != answer.end()) {
    // What wrote where it must not may have hit what the next one is compared with.
    if (answer.at("damaged").get<bool>())
      slot.process.reset();
    throw Failure{Outcome::failed(Status::wrong, wrong->get<std::string>())};
  }
  return outcomeOf(answer);
}

void Workers::forget() {
  for (Slot &slot : slots_) {
    if (options_.runsApart && &slot != &slots_.front())
      continue; // these keep nothing, and may be at work
    slot.jobs.clear();
    if (slot.process && slot.process->alive())
      try {
        slot.process->ask({{"do", "forget"}}, options_.startSeconds);
      } catch (const Error &) {
        slot.process.reset(); // replaced when it is needed
      }
  }
}

} // namespace tuning
} // namespace tenon
