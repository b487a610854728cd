// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/tune/DatabaseStore.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

namespace tenon::tuning {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schemaVersion = 1;

/// SQLite's own waits grow to a tenth of a second, and whoever writes again and again is there before those that wait.
int waitForOthers(void *, int tries) {
  constexpr int most = 20'000; // milliseconds
  if (tries >= most)
    return 0;
  ::usleep(1000);
  return 1;
}

/// What a Tenon of today cannot do anything about, told apart from damage.
struct NewerSchema : Error {
  using Error::Error;
};
struct Damaged : Error {
  using Error::Error;
};

class Statement {
public:
  Statement(sqlite3 *database, const char *sql) : database_(database) {
    check(sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement &) = delete;

  Statement &bind(int at, const std::string &text) {
    check(sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    return *this;
  }
  Statement &bind(int at, double value) {
    check(sqlite3_bind_double(statement_, at, value));
    return *this;
  }
  Statement &bind(int at, int64_t value) {
    check(sqlite3_bind_int64(statement_, at, value));
    return *this;
  }
  /// Whether there is a row.
  bool step() {
    int result = sqlite3_step(statement_);
    if (result == SQLITE_ROW)
      return true;
    if (result != SQLITE_DONE)
      check(result);
    return false;
  }
  std::string text(int column) const {
    const auto *bytes = reinterpret_cast<const char *>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }

private:
  void check(int result) const {
    if (result == SQLITE_OK)
      return;
    std::string text = sqlite3_errmsg(database_);
    if ((result & 0xff) == SQLITE_CORRUPT || (result & 0xff) == SQLITE_NOTADB)
      throw Damaged(text);
    throw Error(text);
  }
  sqlite3 *database_;
  sqlite3_stmt *statement_ = nullptr;
};

class SqliteStore final : public Database::Store {
public:
  /// Throws Damaged, NewerSchema or Error.
  SqliteStore(std::string path, bool readOnly) : path_(std::move(path)), readOnly_(readOnly) {
    int flags = (readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_FULLMUTEX;
    int result = sqlite3_open_v2(path_.c_str(), &database_, flags, nullptr);
    try {
      if (result != SQLITE_OK)
        throw Error("cannot open '" + path_ + "': " + sqlite3_errmsg(database_));
      sqlite3_busy_handler(database_, waitForOthers, nullptr);
      prepare();
    } catch (...) {
      sqlite3_close(database_);
      throw;
    }
  }
  ~SqliteStore() override { sqlite3_close(database_); }

  bool add(const TuneRecord &record) override {
    if (readOnly_)
      return false;
    std::lock_guard lock(mutex_);
    const auto &[kernel, problem, target, device, driver, compiler] = record.key;
    Statement insert(database_, "INSERT OR IGNORE INTO measurements (kernel, problem, target, device, driver, "
                                "compiler, configuration, program, status, seconds, time, record) "
                                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind(1, kernel).bind(2, problem).bind(3, target).bind(4, device).bind(5, driver).bind(6, compiler);
    insert.bind(7, record.configuration.str()).bind(8, record.program);
    insert.bind(9, std::string(nameOf(record.outcome.status))).bind(10, record.outcome.seconds).bind(11, record.time);
    insert.bind(12, toJson(record).dump(-1, ' ', false, Json::error_handler_t::replace));
    insert.step();
    return sqlite3_changes(database_) > 0;
  }

  void visit(const std::string &kernel, const std::string &target,
             const std::function<void(TuneRecord)> &visitor) const override {
    std::lock_guard lock(mutex_);
    Statement select(database_, "SELECT record FROM measurements WHERE (?1 = '' OR kernel = ?1) AND "
                                "(?2 = '' OR target = ?2) ORDER BY id");
    select.bind(1, kernel).bind(2, target);
    while (select.step()) {
      Json json = Json::parse(select.text(0), nullptr, /*allow_exceptions=*/false);
      try {
        visitor(recordFromJson(json));
      } catch (const Error &) { // written by hand, or by a Tenon to come: not ours to use
      }
    }
  }

  std::string description() const override {
    return path_ == ":memory:" ? "in memory, for this process only" : path_ + (readOnly_ ? " (read-only)" : "");
  }
  bool writable() const override { return !readOnly_; }

private:
  void execute(const char *sql) { Statement(database_, sql).step(); }

  void prepare() {
    if (path_ != ":memory:") {
      Statement check(database_, "PRAGMA quick_check(1)");
      if (check.step() && check.text(0) != "ok")
        throw Damaged(check.text(0));
    }
    int64_t version = 0;
    {
      Statement ask(database_, "PRAGMA user_version");
      version = ask.step() ? ask.integer(0) : 0;
    }
    if (version > schemaVersion)
      throw NewerSchema("'" + path_ + "' was made by a newer Tenon");
    if (version == schemaVersion || readOnly_)
      return;
    // Others may be doing the same: one transaction, and everything in it may be there already.
    execute("BEGIN IMMEDIATE");
    execute("CREATE TABLE IF NOT EXISTS measurements (id INTEGER PRIMARY KEY, kernel TEXT NOT NULL, problem TEXT NOT "
            "NULL, target TEXT NOT NULL, device TEXT NOT NULL, driver TEXT NOT NULL, compiler TEXT NOT NULL, "
            "configuration TEXT NOT NULL, program TEXT NOT NULL, status TEXT NOT NULL, seconds REAL NOT NULL, "
            "time INTEGER NOT NULL, record TEXT NOT NULL, UNIQUE (kernel, problem, target, device, driver, compiler, "
            "configuration, program, status, seconds, time))");
    execute("PRAGMA user_version = 1");
    execute("COMMIT");
  }

  std::string path_;
  bool readOnly_;
  sqlite3 *database_ = nullptr;
  mutable std::mutex mutex_;
};

/// Only one process at a time decides that a database is damaged: the second would set aside the first one's new one.
class SetAside {
public:
  explicit SetAside(const std::string &path)
      : file_(::open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (file_ >= 0)
      ::flock(file_, LOCK_EX);
  }
  ~SetAside() {
    if (file_ >= 0)
      ::close(file_);
  }

private:
  int file_;
};

} // namespace

std::unique_ptr<Database::Store> openSqlite(const std::string &path, const Warn &warn) {
  auto openAtAll = [&]() -> std::unique_ptr<Database::Store> {
    if (path == ":memory:" || ::access(path.c_str(), F_OK) != 0 || ::access(path.c_str(), W_OK) == 0)
      try {
        return std::make_unique<SqliteStore>(path, /*readOnly=*/false);
      } catch (const Damaged &) {
        throw;
      } catch (const NewerSchema &) {
        throw;
      } catch (const Error &) {
        if (::access(path.c_str(), R_OK) != 0)
          throw;
      }
    // A folder that cannot be written to (an installation's) may hold one that can be read.
    auto store = std::make_unique<SqliteStore>(path, /*readOnly=*/true);
    warn("new tuning results are not kept: '" + path + "' cannot be written");
    return store;
  };
  try {
    return openAtAll();
  } catch (const Damaged &) {
  }
  SetAside lock(path);
  try {
    return openAtAll(); // somebody else mended it
  } catch (const Damaged &damage) {
    std::string aside = path + ".damaged";
    ::unlink((path + "-journal").c_str());
    if (::rename(path.c_str(), aside.c_str()) != 0)
      throw Error("'" + path + "' is damaged (" + damage.what() + ") and cannot be set aside: " + std::strerror(errno));
    warn("the tuning database '" + path + "' is damaged (" + damage.what() + "); it was set aside as '" + aside +
         "', and a new one begun");
  }
  return openAtAll();
}

} // namespace tenon::tuning
