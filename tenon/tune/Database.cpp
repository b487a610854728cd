// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Database.h"

#include "tenon/base/Error.h"
#include "tenon/jit/DiskCache.h"
#include "tenon/tune/DatabaseStore.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include <sys/vfs.h>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int exportVersion = 1;

uint32_t typeOf(const std::string &folder) {
  struct statfs found {};
  return ::statfs(folder.c_str(), &found) == 0 ? static_cast<uint32_t>(found.f_type) : 0;
}

std::unique_ptr<Database::Store> open(const Database::Options &options, const tuning::Warn &warn) {
  std::string path = options.path;
  if (path.empty()) {
    DiskCache::Options cache;
    cache.warn = [](const std::string &) {};
    DiskCache kernels(cache);
    if (!kernels.enabled()) {
      warn("tuning results are not kept: " + kernels.reason());
      return tuning::openSqlite(":memory:", warn);
    }
    path = kernels.directory() + "/tuning.sqlite";
  }
  if (path == ":memory:")
    return tuning::openSqlite(path, warn);
  try {
    fs::path folder = fs::absolute(path).parent_path();
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    uint32_t type = options.fileSystemType ? options.fileSystemType(folder) : typeOf(folder);
    if (options.oneFilePerRecord || tuning::isNetworkFileSystem(type))
      return tuning::openRecordFiles(path + ".records", warn);
    return tuning::openSqlite(path, warn);
  } catch (const Error &error) {
    warn("tuning results are not kept: " + std::string(error.what()));
  }
  return tuning::openSqlite(":memory:", warn);
}

} // namespace

bool tuning::isNetworkFileSystem(uint32_t type) {
  switch (type) {
  case 0x6969:     // NFS
  case 0x517b:     // SMB
  case 0xff534d42: // CIFS
  case 0xfe534d42: // SMB 2
  case 0x65735546: // FUSE: sshfs and its like
  case 0x01021997: // 9P
  case 0x00c36400: // Ceph
  case 0x0bd00bd0: // Lustre
  case 0x47504653: // GPFS
  case 0x19830326: // BeeGFS
  case 0x5346414f: // AFS
  case 0x7461636f: // OCFS2
  case 0x01161970: // GFS2
    return true;
  }
  return false;
}

bool sameMeasurement(const TuneRecord &a, const TuneRecord &b) {
  return a.key == b.key && a.configuration == b.configuration && a.program == b.program && a.time == b.time &&
         a.outcome.status == b.outcome.status && a.outcome.seconds == b.outcome.seconds;
}

Database::Database() : Database(Options()) {}

Database::Database(Options options) {
  auto warn = options.warn;
  if (!warn)
    warn = [](const std::string &text) { std::fprintf(stderr, "tenon: %s\n", text.c_str()); };
  store_ = open(options, warn);
}

Database::~Database() = default;

bool Database::add(const TuneRecord &record) { return store_->add(record); }
std::string Database::description() const { return store_->description(); }
bool Database::writable() const { return store_->writable(); }

std::vector<TuneRecord> Database::find(const TuneKey &key) const {
  std::vector<TuneRecord> found;
  store_->visit(key.kernel, key.target, [&](TuneRecord record) {
    if (record.key == key)
      found.push_back(std::move(record));
  });
  return found;
}

std::vector<TuneRecord> Database::related(const std::string &kernel, const std::string &target) const {
  std::vector<TuneRecord> found;
  store_->visit(kernel, target, [&](TuneRecord record) { found.push_back(std::move(record)); });
  return found;
}

//===--- JSON -----------------------------------------------------------------------------------------------------===//

namespace tuning {

Json toJson(const TuneRecord &record) {
  const Outcome &outcome = record.outcome;
  return {{"kernel", record.key.kernel},     {"problem", record.key.problem},
          {"target", record.key.target},     {"device", record.key.device},
          {"driver", record.key.driver},     {"compiler", record.key.compiler},
          {"configuration", record.configuration.str()},
          {"program", record.program},       {"status", nameOf(outcome.status)},
          {"reason", outcome.reason},        {"seconds", outcome.seconds},
          {"median", outcome.median},        {"trials", outcome.trials},
          {"cost", outcome.cost},            {"predicted", record.predicted},
          {"features", record.features},     {"time", record.time}};
}

TuneRecord recordFromJson(const Json &json) {
  try {
    TuneRecord record;
    record.key = {json.at("kernel"), json.at("problem"), json.at("target"),
                  json.at("device"), json.at("driver"),  json.at("compiler")};
    record.configuration = Configuration::parse(json.at("configuration").get<std::string>());
    record.program = json.at("program");
    auto status = parseStatus(json.at("status").get<std::string>());
    if (!status)
      throw Error("'" + json.at("status").get<std::string>() + "' is no outcome");
    record.outcome.status = *status;
    record.outcome.reason = json.at("reason");
    record.outcome.seconds = json.at("seconds");
    record.outcome.median = json.at("median");
    record.outcome.trials = json.at("trials");
    record.outcome.cost = json.at("cost");
    record.predicted = json.at("predicted").is_number() ? json.at("predicted").get<double>() : 0; // infinity is null
    for (const Json &feature : json.at("features"))
      record.features.push_back(feature.is_number() ? feature.get<double>() : 0);
    record.time = json.at("time");
    if (record.outcome.measured() && !(record.outcome.seconds > 0))
      throw Error("a measurement of " + std::to_string(record.outcome.seconds) + " seconds");
    return record;
  } catch (const nlohmann::json::exception &error) {
    throw Error(std::string("not a tuning record: ") + error.what());
  }
}

} // namespace tuning

std::string Database::exportJson(const std::string &kernel) const {
  Json records = Json::array();
  for (const TuneRecord &record : related(kernel, ""))
    records.push_back(tuning::toJson(record));
  return Json({{"tenon_tuning", exportVersion}, {"records", records}})
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

size_t Database::importJson(const std::string &text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("tenon_tuning") || !json.contains("records") || !json["records"].is_array())
    throw Error("this is no export of tuning results: it should be JSON with \"tenon_tuning\" and \"records\"");
  if (json["tenon_tuning"] != exportVersion)
    throw Error("this export of tuning results has version " + json["tenon_tuning"].dump() + ", and this Tenon reads " +
                std::to_string(exportVersion));
  std::vector<TuneRecord> records;
  for (size_t i = 0; i < json["records"].size(); ++i)
    try {
      records.push_back(tuning::recordFromJson(json["records"][i]));
    } catch (const Error &error) {
      throw Error("record " + std::to_string(i) + " of the export is damaged: " + error.what());
    }
  if (!writable())
    throw Error("cannot import: the database is " + description());
  size_t added = 0;
  for (const TuneRecord &record : records)
    added += add(record);
  return added;
}

//===--- The choice -----------------------------------------------------------------------------------------------===//

std::optional<TuneRecord> bestOf(const std::vector<TuneRecord> &records,
                                 const std::function<bool(const TuneRecord &)> &isCurrent) {
  // A failure, too, is of one program: the configuration of a kernel that was mended is not out.
  std::set<std::pair<Configuration, std::string>> bad;
  for (const TuneRecord &record : records)
    if (!record.outcome.measured() && record.outcome.status != Outcome::Status::refused)
      bad.insert({record.configuration, record.program});
  // Of several measurements the middle one counts, of two the slower: what was lucky once is measured again in the end.
  std::map<std::pair<Configuration, std::string>, std::vector<const TuneRecord *>> measured;
  for (const TuneRecord &record : records)
    if (record.outcome.measured() && !bad.contains({record.configuration, record.program}))
      measured[{record.configuration, record.program}].push_back(&record);
  std::vector<const TuneRecord *> good;
  for (auto &[program, times] : measured) {
    std::stable_sort(times.begin(), times.end(), [](const TuneRecord *a, const TuneRecord *b) {
      return a->outcome.seconds < b->outcome.seconds;
    });
    good.push_back(times[times.size() / 2]);
  }
  std::stable_sort(good.begin(), good.end(), [](const TuneRecord *a, const TuneRecord *b) {
    return std::pair(a->outcome.seconds, a->configuration) < std::pair(b->outcome.seconds, b->configuration);
  });
  for (const TuneRecord *record : good)
    if (!isCurrent || isCurrent(*record))
      return *record;
  return std::nullopt;
}

} // namespace tenon
