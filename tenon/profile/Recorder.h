// SPDX-License-Identifier: Apache-2.0
//
// Internal to the library: what runtime/ and jit/ tell a profile. While nobody listens, a Span costs one relaxed load;
// while somebody does, it is built on the stack and copied into a buffer of the thread's own when it ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::profile {

enum class Kind : uint8_t {
  launch,      ///< a whole call of launch(), on the host
  submit,      ///< the part of it that hands the kernel to a device
  run,         ///< a kernel running
  compile,     ///< a specialisation being made
  phase,       ///< of compilation
  copy,        ///< between two places, or on one
  fill,        ///< of device memory
  synchronize, ///< the host waits
  range,       ///< named by the user
};

/// Who listens, as bits; zero almost always.
extern std::atomic<uint32_t> listeners;
inline constexpr uint32_t recording = 1, nvtx = 2;
inline bool enabled() { return listeners.load(std::memory_order_relaxed) != 0; }

inline int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// What a span becomes. Without initialisers, so that one nobody wants costs nothing.
struct Event {
  static constexpr int maxMemory = 5;
  struct Memory {
    uint64_t address;
    uint64_t bytes : 63;
    uint64_t written : 1;
  };

  int64_t begin, end;    ///< ns of the steady clock
  uint64_t launch;       ///< the number of the launch it belongs to; 0: none. Of a device's run, that of the driver's call
  uint64_t bytes;        ///< moved, or of all its tensors
  double flops;          ///< 0: not counted
  uint32_t name, detail; ///< numbers of texts (textOf); 0: none
  uint32_t site;         ///< number of a call site's text; 0: none
  uint32_t thread;       ///< from 1
  uint64_t graph;        ///< of a graph's launch: its number (addGraph); of a run that a graph made: its node's; 0: none
  Kind kind;
  bool implicit;    ///< of a wait: nobody asked for it
  bool foreign;     ///< told by a device: `thread` is its stream
  int8_t device;    ///< -1: the CPU
  uint8_t memories; ///< how many follow; a launch with more has only the first ones
  Memory memory[maxMemory];
};

/// The number of a text, the same for equal texts. Keeps a copy.
uint32_t intern(std::string_view text);
/// A number of its own for every launch.
uint64_t nextLaunch();

class Span {
public:
  Span(Kind kind, std::string_view name) {
    if (enabled()) [[unlikely]]
      begin(kind, name);
  }
  ~Span() {
    if (isOpen_) [[unlikely]]
      end();
  }
  Span(const Span &) = delete;
  Span &operator=(const Span &) = delete;

  explicit operator bool() const { return isOpen_; }
  Event *operator->() { return &event_; }
  void explain(std::string_view detail) { event_.detail = intern(detail); }
  void addMemory(const void *address, uint64_t bytes, bool written);
  /// Remembers who called the library.
  void findSite();

private:
  void begin(Kind kind, std::string_view name);
  void end() noexcept;

  bool isOpen_ = false, isPushed_ = false;
  Event event_;
};

/// While it lives, waits of this thread are the library's own doing, for this reason.
class Implicit {
public:
  explicit Implicit(const char *reason) : outer_(current) { current = reason; }
  ~Implicit() { current = outer_; }
  Implicit(const Implicit &) = delete;
  Implicit &operator=(const Implicit &) = delete;
  static thread_local const char *current; ///< null: what is waited for was asked for

private:
  const char *outer_;
};

/// The wait of a stream or an event, implicit or not. `what` is a text such as "a stream of cuda:0".
class Wait {
public:
  explicit Wait(std::string_view what) : span_(Kind::synchronize, what) {
    if (span_) [[unlikely]]
      describe();
  }

private:
  void describe();
  Span span_;
};

/// A kernel of a graph, in the order of capture, and what it must do at least; 0: not counted.
struct GraphKernel {
  uint32_t name;
  uint64_t bytes;
  double flops;
};
/// The number of a graph, for the events of its launches.
uint64_t addGraph(std::vector<GraphKernel> kernels);
/// The graph is gone. What is kept of it follows, at once or when the last profile is done that may have seen it.
void removeGraph(uint64_t number) noexcept;

/// Called by the runtime when it has opened the NVIDIA driver: device records become possible.
void deviceOpened();

//===--- For Profile ----------------------------------------------------------------------------------------------===//

/// Adds an event that happened elsewhere (a device's clock, translated).
void addForeign(const Event &event);
void startRecording();
/// The events that ended by now and began at `since` or later, and how many did not fit. The last one to stop lets go
/// of the rest.
std::vector<Event> stopRecording(int64_t since, uint64_t &dropped);
std::string textOf(uint32_t number);
std::vector<GraphKernel> graphKernels(uint64_t number);
/// Of a profile that has started recording: it asks for no more graphs.
void releaseGraphs();
size_t keptGraphs(); ///< how many
/// Gives the runs that graphs made the work of the launches that were captured, and the number of their graph's launch.
void matchGraphs(std::vector<Event> &events);

} // namespace tenon::profile
