// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/Outcome.h"
#include "tenon/tune/Space.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// What earlier tuning runs found out: one record per configuration and measurement.
///
/// In SQLite where the file system allows it (safe with many processes; a record is there whole or not at all, whatever
/// kills the process). On a network file system, whose locks cannot be trusted, every record is a file of its own,
/// written aside and renamed, in a folder beside the database's name; an index of it is kept in memory.
///
/// Like a cache, a database never makes anything worse than having none: one that is damaged is set aside, one that
/// cannot be written is read, one that cannot be read is done without, and the reason is said once.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// What a measurement holds for. Change one of these and it does not.
struct TuneKey {
  std::string kernel;   ///< its name
  std::string problem;  ///< types, sizes and strides of the arguments, and the parameters that are not tuned
  std::string target;   ///< "cpu"
  std::string device;   ///< "AMD EPYC, 2 processors", "NVIDIA H200"
  std::string driver;   ///< of a GPU
  std::string compiler; ///< compilerId(): what generates the code
  friend bool operator==(const TuneKey &, const TuneKey &) = default;
};

struct TuneRecord {
  TuneKey key;
  Configuration configuration;
  std::string program; ///< hash of the configuration's Tile IR: another kernel of the same name is another kernel
  Outcome outcome;
  double predicted = 0;          ///< seconds, by the model
  std::vector<double> features;  ///< that a learner went by
  int64_t time = 0;              ///< when, in seconds since 1970
  friend bool sameMeasurement(const TuneRecord &a, const TuneRecord &b);
};

class Database {
public:
  struct Options {
    /// A file; ":memory:" keeps nothing; empty: tuning.sqlite in the directory of the kernel cache.
    std::string path;
    /// As if the file system were a network's.
    bool oneFilePerRecord = false;
    /// What kind of file system a folder is on, as statfs's f_type; without it, statfs is asked.
    std::function<uint32_t(const std::string &folder)> fileSystemType;
    /// Told each kind of trouble once; without it, they go to the standard error stream.
    std::function<void(const std::string &)> warn;
  };
  Database();
  explicit Database(Options options);
  ~Database();
  Database(const Database &) = delete;
  Database &operator=(const Database &) = delete;

  /// Kept on disk when this returns, unless the database is read-only. Returns false when it was there already.
  bool add(const TuneRecord &record);
  /// In the order they were added.
  std::vector<TuneRecord> find(const TuneKey &key) const;
  /// All of a kernel on a target, whatever the problem, the device and the versions; all of everything if empty.
  std::vector<TuneRecord> related(const std::string &kernel, const std::string &target) const;

  /// Where it is and how, in words: "/home/you/.cache/tenon/tuning.sqlite (read-only)".
  std::string description() const;
  bool writable() const;

  /// All records (of one kernel, if named) as JSON, and back. Importing checks everything first and throws Error,
  /// having added nothing, when the text is not such an export; returns how many records were new.
  std::string exportJson(const std::string &kernel = "") const;
  size_t importJson(const std::string &text);

  class Store;

private:
  std::unique_ptr<Store> store_;
};

/// The best of the records of one key: of each configuration the middle measurement (of two the slower), and of those the
/// fastest; on a tie the first by name. A configuration that was ever found wrong, crashing, hanging or too fast to be true is out.
/// `isCurrent` is asked about the best first, so that only what would be chosen is traced; a record that it denies
/// counts for nothing.
std::optional<TuneRecord> bestOf(const std::vector<TuneRecord> &records,
                                 const std::function<bool(const TuneRecord &)> &isCurrent = {});

} // namespace tenon
#pragma GCC visibility pop
