// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/tune/DatabaseStore.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace tenon::tuning {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char *asideSuffix = ".new"; // of what is being written

/// A folder of records: <nanoseconds since 1970>-<host>-<process>-<count>.json, so that names sort by time.
class RecordFiles final : public Database::Store {
public:
  RecordFiles(std::string folder, const Warn &warn) : folder_(std::move(folder)), warn_(warn) {
    std::error_code error;
    bool isNew = fs::create_directories(folder_, error);
    if (error || !fs::is_directory(folder_))
      throw Error("cannot use the folder '" + folder_ + "': " + error.message());
    if (isNew) // one that others share stays as it is
      fs::permissions(folder_, fs::perms::owner_all, error);
    writable_ = ::access(folder_.c_str(), W_OK) == 0;
    if (!writable_)
      warn_("new tuning results are not kept: '" + folder_ + "' cannot be written");
    else
      removeLeftovers();
  }

  bool add(const TuneRecord &record) override {
    std::lock_guard lock(mutex_);
    refresh();
    for (const auto &[name, known] : index_)
      if (known && sameMeasurement(*known, record))
        return false;
    if (!writable_)
      return false;
    char host[65] = "host";
    ::gethostname(host, sizeof host - 1);
    auto now = std::chrono::system_clock::now().time_since_epoch();
    std::string name = std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) + "-" + host +
                       "-" + std::to_string(::getpid()) + "-" + std::to_string(count_++) + ".json";
    write(name, toJson(record).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    index_[name] = record;
    return true;
  }

  void visit(const std::string &kernel, const std::string &target,
             const std::function<void(TuneRecord)> &visitor) const override {
    std::lock_guard lock(mutex_);
    refresh();
    for (const auto &[name, record] : index_)
      if (record && (kernel.empty() || record->key.kernel == kernel) &&
          (target.empty() || record->key.target == target))
        visitor(*record);
  }

  std::string description() const override { return folder_ + (writable_ ? "" : " (read-only)"); }
  bool writable() const override { return writable_; }

private:
  /// Of processes that were killed while they wrote. Writing takes milliseconds; clocks of two machines may differ.
  void removeLeftovers() const {
    constexpr auto old = std::chrono::hours(24);
    std::error_code error, ignored;
    for (fs::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
      std::string name = file->path().filename().string();
      if (name.front() != '.' || !name.ends_with(asideSuffix))
        continue;
      fs::file_time_type written = fs::last_write_time(file->path(), ignored);
      if (!ignored && fs::file_time_type::clock::now() - written > old)
        fs::remove(file->path(), ignored);
    }
  }

  /// Complete or not at all, and on disk when it returns.
  void write(const std::string &name, const std::string &text) const {
    std::string aside = folder_ + "/." + name + asideSuffix, final = folder_ + "/" + name;
    int file = ::open(aside.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = file >= 0;
    for (size_t at = 0; good && at < text.size();) {
      ssize_t written = ::write(file, text.data() + at, text.size() - at);
      if (written < 0 && errno == EINTR)
        continue;
      good = written > 0;
      at += good ? static_cast<size_t>(written) : 0;
    }
    good = good && ::fsync(file) == 0;
    int error = errno;
    if (file >= 0)
      ::close(file);
    if (good && ::rename(aside.c_str(), final.c_str()) == 0)
      return;
    error = good ? errno : error;
    ::unlink(aside.c_str());
    throw Error("cannot write '" + final + "': " + std::strerror(error));
  }

  /// Reads what is new. What cannot be read counts as read: it will not get better.
  void refresh() const {
    std::error_code error;
    for (fs::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
      std::string name = file->path().filename().string();
      if (name.empty() || name.front() == '.' || !name.ends_with(".json") || index_.contains(name))
        continue;
      std::ifstream stream(file->path());
      std::stringstream text;
      text << stream.rdbuf();
      try {
        index_[name] = recordFromJson(Json::parse(text.str(), nullptr, /*allow_exceptions=*/false));
      } catch (const Error &) {
        index_[name] = std::nullopt;
        if (!said_)
          warn_("the tuning record '" + file->path().string() + "' is damaged and not used");
        said_ = true;
      }
    }
  }

  std::string folder_;
  Warn warn_;
  bool writable_ = false;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::optional<TuneRecord>> index_; ///< by file name
  mutable bool said_ = false;
  size_t count_ = 0;
};

} // namespace

std::unique_ptr<Database::Store> openRecordFiles(const std::string &folder, const Warn &warn) {
  return std::make_unique<RecordFiles>(folder, warn);
}

} // namespace tenon::tuning
