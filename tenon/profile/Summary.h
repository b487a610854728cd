// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/profile/Profile.h"

#include <optional>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// What a machine could do at most, where it is known: rates are then told in percent of it.
struct ProfileCeilings {
  double bytesPerSecond = 0, flopsPerSecond = 0; ///< 0: not known
};

/// A profile added up.
struct ProfileSummary {
  struct Kernel {
    std::string name, place; ///< "softmax", "cuda:0"
    size_t calls = 0;
    double self = 0;     ///< seconds that it ran
    double fastest = 0;  ///< of its runs
    double host = 0;     ///< seconds of launch() above running, compiling and waiting
    double total = 0;    ///< seconds of launch(), compiling included
    uint64_t bytes = 0; ///< that it must move at least
    double flops = 0;    ///< 0: not counted
    double uncounted = 0; ///< seconds of runs whose work is not known
    double share = 0;    ///< of the profile's time
    bool isTimed = true; ///< false: it ran on a device that nobody watched
    /// The least time that its bytes or operations could have taken, over its time; 0: not known.
    double ofCeiling = 0;
    double bytesPerSecond() const { return self > uncounted ? static_cast<double>(bytes) / (self - uncounted) : 0; }
    double flopsPerSecond() const { return self > uncounted ? flops / (self - uncounted) : 0; }
  };
  /// A range of the user's, by its path from the outermost: "layer / attention".
  struct Op {
    std::string path;
    int depth = 0;
    size_t calls = 0, launches = 0;
    double self = 0, total = 0; ///< seconds without, and with, the ranges inside it
    double kernels = 0;         ///< seconds that the kernels launched in it ran, those of ranges inside it included
  };
  struct Gap {
    std::string place;
    int64_t begin = 0, end = 0;
    std::string meanwhile; ///< what the host did most of that time
    double seconds() const { return static_cast<double>(end - begin) * 1e-9; }
  };
  struct Place {
    std::string name;
    size_t runs = 0;
    double busy = 0, idle = 0; ///< between its first and its last run
  };
  struct Finding {
    std::string kind;   ///< "launch-bound", "implicit-synchronisation", "unfused", "small-copies", "compiling", "idle"
    std::string text;   ///< a sentence
    std::string site;   ///< the caller, where there is one
    double seconds = 0; ///< that could be saved, about
  };

  double seconds = 0;
  std::vector<Kernel> kernels; ///< by their time
  std::vector<Op> ops;         ///< as they were first entered
  std::vector<Place> places;
  std::vector<Gap> gaps;         ///< the longest
  std::vector<Finding> findings; ///< by what they could save
  double compiling = 0, copying = 0, waiting = 0;
  size_t compilations = 0, copies = 0, waits = 0;
};

/// Ceilings by place: "cpu", "cuda:0".
ProfileSummary summarize(const ProfileData &data, const std::map<std::string, ProfileCeilings> &ceilings = {});

/// Stacks of ranges, launches and phases with their own microseconds, one a line: "a;b;c 12".
std::string collapsedStacks(const ProfileData &data);
/// The same as a picture: a complete SVG.
std::string flameGraph(const ProfileData &data);

} // namespace tenon
#pragma GCC visibility pop
