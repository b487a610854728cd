// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Worker.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Bench.h"
#include "tenon/measure/Machine.h"
#include "tenon/tune/Arena.h"
#include "tenon/tune/Compare.h"
#include "tenon/tune/Examination.h"
#include "tenon/tune/TileProgram.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tenon::tuning {
namespace {

using Json = nlohmann::ordered_json;

std::chrono::steady_clock::time_point threadTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(time.tv_sec) +
                                               std::chrono::nanoseconds(time.tv_nsec));
}

/// Copies of the shared memory, on the host or on the device that the kernel runs on.
class Sets {
public:
  Sets(const MappedArena &arena, Target target, int device, size_t count) : arena_(arena), bytes_(arena.bytes()) {
    Device place = target == Target::cuda ? Device::cuda(device) : Device::cpu();
    for (size_t i = 0; i < count; ++i)
      sets_.push_back(Tensor::empty(DType::u8, {static_cast<int64_t>(bytes_)}, place));
  }
  size_t count() const { return sets_.size(); }
  std::byte *begin(size_t set) const { return static_cast<std::byte *>(sets_[set].data()); }
  const Tensor &bytes(size_t set) const { return sets_[set]; }

  void fill() const { fill(shared()); }
  void fill(const Tensor &image) const {
    for (const Tensor &set : sets_)
      set.copyFrom(image);
  }
  void copyOut(size_t set) const { shared().copyFrom(sets_[set]); }
  /// The first set that differs from the first one.
  std::optional<size_t> different() const {
    Tensor first = sets_[0].to(Device::cpu());
    for (size_t i = 1; i < sets_.size(); ++i) {
      Tensor other = sets_[i].device().isCpu() ? sets_[i] : sets_[i].to(Device::cpu());
      if (std::memcmp(first.data(), other.data(), bytes_) != 0)
        return i;
    }
    return std::nullopt;
  }

private:
  Tensor shared() const { return Tensor::borrow(arena_.begin(), bytes_, DType::u8, {static_cast<int64_t>(bytes_)}); }

  const MappedArena &arena_;
  size_t bytes_;
  std::vector<Tensor> sets_;
};

class Worker {
public:
  explicit Worker(const WorkerHooks &hooks) : hooks_(hooks) {}

  Json answer(const Json &question) {
    const std::string what = question.at("do");
    if (what == "setup")
      return setUp(question);
    if (what == "compile")
      return compile(question);
    if (what == "run")
      return run(question);
    if (what == "time")
      return time(question);
    if (what == "examine")
      return examine(question);
    if (what == "forget") {
      jobs_.clear();
      return Json::object();
    }
    throw Error("a worker does not know how to '" + what + "'");
  }

private:
  struct Job {
    TileProgram program;
    Configuration configuration;
    int threads;
  };

  Json setUp(const Json &question) {
    target_ = *parseTarget(question.at("target").get<std::string>());
    device_ = question.at("device");
    words_ = question.at("words").get<std::vector<int64_t>>();
    addresses_ = question.at("addresses").get<std::vector<size_t>>();
    sets_.reset();
    examination_.reset();
    images_ = question.value("images", Json());
    arena_.emplace(question.at("arena").get<std::string>(), question.at("bytes").get<size_t>());
    memoryBytes_ = question.at("memory");
    if (question.value("yields", false)) // to what is timed meanwhile
      ::setpriority(PRIO_PROCESS, 0, 10);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
    rlimit limit{};
    // The driver of a device maps many times what it uses.
    if (memoryBytes_ && target_ != Target::cuda && ::getrlimit(RLIMIT_DATA, &limit) == 0) {
      limit.rlim_cur = std::min<rlim_t>(memoryBytes_, limit.rlim_max);
      ::setrlimit(RLIMIT_DATA, &limit);
    }
#endif
    return Json::object();
  }

  Json compile(const Json &question) {
    Configuration configuration = Configuration::parse(question.at("configuration").get<std::string>());
    if (hooks_.beforeCompile)
      hooks_.beforeCompile(configuration);
    CompileOptions options;
    options.isa = question.at("isa");
    options.gpu = question.at("gpu");
    options.device = device_;
    options.warps = question.at("warps");
    options.cluster = question.at("cluster");
    options.stages = question.at("stages");
    options.split = question.at("split");
    options.shareTail = question.at("tail");
    options.pingPong = question.at("pingpong");
    options.without = question.at("without");
    options.useDiskCache = question.at("disk_cache");
    if (target_ == Target::cuda)
      options.gpu = cudaProperties(device_).architecture();
    CompileReport report;
    TileProgram program(question.at("ir").get<std::string>(), target_, options, &report);
    jobs_.erase(question.at("job").get<size_t>());
    if (question.at("keep").get<bool>())
      jobs_.emplace(question.at("job").get<size_t>(),
                    Job{std::move(program), std::move(configuration), question.at("threads").get<int>()});
    return {{"milliseconds", report.milliseconds()}, {"from_disk", report.fromDisk}};
  }

  const Job &job(const Json &number) const {
    auto found = jobs_.find(number.get<size_t>());
    if (found == jobs_.end())
      throw InternalError("a worker was asked for a job that it does not have");
    return found->second;
  }

  std::vector<int64_t> wordsAt(std::byte *base) const {
    std::vector<int64_t> words = words_;
    for (size_t position : addresses_)
      words[position] += reinterpret_cast<int64_t>(base);
    return words;
  }

  void launch(const Job &job, std::span<const int64_t> words, Stream *stream = nullptr) const {
    auto run = [&] { job.program.run(words, job.threads, stream); };
    if (hooks_.aroundRun)
      hooks_.aroundRun(job.configuration, words, run);
    else
      run();
  }

  /// So many copies that a launch finds its arguments in memory and not in the cache, as it would in a program. Two at
  /// least: what two launches leave is compared.
  Sets &sets() {
    if (!sets_) {
      size_t each = std::max<size_t>(arena_->bytes(), 1), cache = 0;
      if (target_ == Target::cpu)
        cache = thisMachine().lastLevelCacheBytes();
      else if (target_ == Target::cuda)
        cache = static_cast<size_t>(cudaProperties(device_).l2Bytes);
      size_t wanted = each > 2 * cache ? 2 : 2 * cache / each + 2;
      if (target_ == Target::cpu && memoryBytes_)
        wanted = std::clamp<size_t>(wanted, 2, std::max<size_t>(memoryBytes_ / 2 / each, 2));
      sets_.emplace(*arena_, target_, device_, std::min<size_t>(wanted, 512));
    }
    return *sets_;
  }

  Json run(const Json &question) {
    const Job &one = job(question.at("job"));
    double seconds = 0;
    auto timed = [&](std::byte *base) {
      std::vector<int64_t> words = wordsAt(base);
      auto start = std::chrono::steady_clock::now();
      launch(one, words);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    if (target_ == Target::cuda) {
      Sets device(*arena_, target_, device_, 1);
      device.fill();
      timed(device.begin(0));
      device.copyOut(0);
    } else {
      timed(arena_->begin());
    }
    return {{"seconds", seconds}};
  }

  Json time(const Json &question) {
    std::vector<const Job *> jobs;
    for (const Json &number : question.at("jobs"))
      jobs.push_back(&job(number));
    Sets &copies = sets();
    copies.fill();
    double seconds = question.at("seconds");
    std::vector<Timing> timings =
        target_ == Target::cuda ? timeOnDevice(jobs, copies, seconds) : timeOnHost(jobs, copies, seconds);
    // What was timed must have done the work, every time: all copies hold the same inputs, so all must end up alike.
    if (question.at("check").get<bool>()) {
      // Those whose turn never came have theirs now.
      for (size_t i = std::min(turn_, copies.count()); i < copies.count(); ++i)
        launch(*jobs[0], wordsAt(copies.begin(i)));
      if (question.at("deterministic").get<bool>())
        if (auto other = copies.different())
          throw Error("launch " + std::to_string(*other) +
                      " of those that were timed left something else behind than the first, on the same inputs");
      copies.copyOut(0);
    }
    Json answers = Json::array();
    for (const Timing &timing : timings)
      answers.push_back(toJson(timing));
    return {{"timings", answers}, {"sets", copies.count()}};
  }

  /// See Examination.h.
  Json examine(const Json &question) {
    const Job &one = job(question.at("job"));
    if (!examination_)
      examination_.emplace(images_, arena_->bytes(), target_ == Target::cuda ? Device::cuda(device_) : Device::cpu());
    Examination &exam = *examination_;
    Sets &copies = sets();
    bool isDeterministic = question.at("deterministic");
    auto complain = [](const Examination::Complaint &complaint, const char *when = "") {
      return Json{{"wrong", when + complaint.text}, {"damaged", complaint.damaged}};
    };
    double once = 0;
    const Tensor *starts[2] = {&exam.first(), &exam.second()};
    for (size_t run = 0; run < 2; ++run) {
      copies.bytes(run).copyFrom(*starts[run]);
      std::vector<int64_t> words = wordsAt(copies.begin(run));
      auto start = std::chrono::steady_clock::now();
      launch(one, words);
      once = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (auto complaint = exam.damage(copies.bytes(run), *starts[run]))
        return complain(*complaint);
    }
    if (isDeterministic)
      if (auto complaint = exam.difference(copies.bytes(0), copies.bytes(1)))
        return complain(*complaint);
    Timing timing{"", {once, once, once}, once, 1, 1, true};
    if (!question.at("wanted").get<bool>()) {
      exam.show(copies.bytes(0));
      return toJson(timing);
    }
    auto tolerances = question.at("tolerances").get<std::vector<double>>();
    auto relatives = question.at("relatives").get<std::vector<double>>();
    if (auto complaint = exam.distance(copies.bytes(0), tolerances, relatives))
      return complain(*complaint);

    Tensor left = copies.bytes(0).clone();
    copies.fill(exam.first());
    double seconds = question.at("seconds"), slow = question.at("slow");
    turn_ = 0;
    if (target_ == Target::cuda)
      timing = timeOnDevice({&one}, copies, seconds, slow).front();
    else if (slow == 0 || once <= std::max(slow, coldLaunch))
      timing = timeOnHost({&one}, copies, seconds).front();
    for (size_t i = 0; i < std::min(turn_, copies.count()); ++i) {
      if (isDeterministic && firstDifferentByte(copies.bytes(i), left))
        return Json{{"wrong", "while it was timed it left another result than before"}, {"damaged", true}};
      if (!isDeterministic)
        if (auto complaint = exam.distance(copies.bytes(i), tolerances, relatives))
          return complain(*complaint, "while it was timed: ");
    }
    return toJson(timing);
  }

  static Json toJson(const Timing &timing) {
    return {{"median", timing.seconds.median}, {"fastest", timing.fastest}, {"trials", timing.trials}};
  }

  std::vector<Timing> timeOnHost(const std::vector<const Job *> &jobs, const Sets &copies, double seconds) {
    turn_ = 0;
    std::vector<std::vector<int64_t>> words;
    for (size_t i = 0; i < copies.count(); ++i)
      words.push_back(wordsAt(copies.begin(i)));
    std::vector<Subject> subjects;
    for (const Job *one : jobs)
      subjects.push_back({one->configuration.str(), [&, one] { launch(*one, words[turn_++ % words.size()]); }});
    BenchOptions options;
    options.budgetSeconds = seconds;
    options.spread = 0.02;
    // On one thread, by the clock of that thread: it stands still while the processor is somebody else's.
    bool onOne = std::all_of(jobs.begin(), jobs.end(), [](const Job *one) { return one->threads == 1; });
    if (target_ == Target::cpu && onOne)
      options.now = threadTime;
    options.maxTrials = 200;
    return compare(subjects, options).timings;
  }

  /// Large products draw more power than a device may for long, and its clocks fall within milliseconds: whoever comes
  /// after a pause would win, by a tenth. So there is one before every burst of launches that take long.
  static void rest(double burstSeconds, double launchSeconds) {
    constexpr double heats = 100e-6, least = 5e-3, most = 50e-3;
    if (launchSeconds > heats)
      std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(3 * burstSeconds, least, most)));
  }

  /// Bursts between two events, the jobs in turn. Where every launch takes longer than `slow` (unless that is 0), the
  /// first burst is enough.
  std::vector<Timing> timeOnDevice(const std::vector<const Job *> &jobs, const Sets &copies, double seconds,
                                   double slow = 0) {
    turn_ = 0;
    Stream stream(Device::cuda(device_));
    std::vector<std::vector<int64_t>> words;
    for (size_t i = 0; i < copies.count(); ++i)
      words.push_back(wordsAt(copies.begin(i)));
    auto burst = [&](const Job &one, size_t launches) {
      Event start, end;
      stream.record(start);
      for (size_t i = 0; i < launches; ++i)
        launch(one, words[turn_++ % words.size()], &stream);
      stream.record(end);
      stream.synchronize();
      return elapsedMilliseconds(start, end) * 1e-3 / static_cast<double>(launches);
    };
    std::vector<size_t> launches;
    std::vector<double> each;
    std::vector<std::vector<double>> samples(jobs.size());
    bool isSlow = slow > 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      double first = burst(*jobs[i], 2), next = isSlow && first > 2 * slow ? first : burst(*jobs[i], 3);
      isSlow &= next > slow;
      launches.push_back(static_cast<size_t>(std::clamp(1e-3 / std::max(next, 1e-7), 1.0, 500.0)));
      each.push_back(next);
      samples[i].push_back(next);
    }
    if (!isSlow)
      samples.assign(jobs.size(), {});
    auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < 50 && !isSlow; ++round) {
      for (size_t i = 0; i < jobs.size(); ++i) {
        rest(each[i] * static_cast<double>(launches[i]), each[i]);
        samples[i].push_back(burst(*jobs[i], launches[i]));
      }
      double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (round >= 4 && spent > seconds)
        break;
    }
    std::vector<Timing> timings;
    for (size_t i = 0; i < jobs.size(); ++i) {
      double fastest = *std::min_element(samples[i].begin(), samples[i].end());
      timings.push_back(
          {jobs[i]->configuration.str(), estimate(samples[i]), fastest, samples[i].size(), launches[i], true});
    }
    return timings;
  }

  const WorkerHooks &hooks_;
  Target target_ = Target::cpu;
  int device_ = 0;
  uint64_t memoryBytes_ = 0;
  std::vector<int64_t> words_;
  std::vector<size_t> addresses_;
  std::optional<MappedArena> arena_;
  std::optional<Sets> sets_;
  Json images_; ///< of the examination
  std::optional<Examination> examination_;
  std::map<size_t, Job> jobs_;
  size_t turn_ = 0;
};

/// The standard output is for answers; what kernels print goes to the standard error stream.
std::FILE *takeStandardOutput() {
  int copy = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
  ::dup2(2, 1);
  return ::fdopen(copy, "w");
}

} // namespace

int workerMain(const WorkerHooks &hooks) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // a tuner that was killed leaves no candidate behind that runs forever
  std::FILE *out = takeStandardOutput();
  auto say = [&](const Json &answer) {
    std::string line = answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return std::fwrite(line.data(), 1, line.size(), out) == line.size() && std::fflush(out) == 0;
  };
  if (!say({{"worker", 1}, {"compiler", compilerId()}}))
    return 1;
  Worker worker(hooks);
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      answer = worker.answer(Json::parse(line));
    } catch (const std::bad_alloc &) {
      answer = {{"error", "out of memory"}};
    } catch (const std::exception &error) {
      answer = {{"error", error.what()}};
    }
    if (!say(answer))
      return 1;
  }
  return 0;
}

} // namespace tenon::tuning
