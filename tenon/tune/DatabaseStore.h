// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: where the records of a Database are.
#pragma once

#include "tenon/tune/Database.h"

#include <nlohmann/json_fwd.hpp>

namespace tenon {

class Database::Store {
public:
  virtual ~Store() = default;
  virtual bool add(const TuneRecord &record) = 0;
  /// Records whose kernel and target are these (any, if empty), in the order they were added.
  virtual void visit(const std::string &kernel, const std::string &target,
                     const std::function<void(TuneRecord)> &visitor) const = 0;
  virtual std::string description() const = 0;
  virtual bool writable() const = 0;
};

namespace tuning {

/// Whether statfs's f_type is that of a file system of other machines: two processes on two of them do not see each
/// other's locks reliably, or at all.
bool isNetworkFileSystem(uint32_t type);

using Warn = std::function<void(const std::string &)>;
/// Throws Error when there is no way to use this path.
std::unique_ptr<Database::Store> openSqlite(const std::string &path, const Warn &warn);
std::unique_ptr<Database::Store> openRecordFiles(const std::string &folder, const Warn &warn);

nlohmann::ordered_json toJson(const TuneRecord &record);
/// Throws Error when it is none.
TuneRecord recordFromJson(const nlohmann::ordered_json &json);

} // namespace tuning
} // namespace tenon
