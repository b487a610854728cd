// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/TileText.h"
#include "tenon/jit/Executable.h"

#include <bit>
#include <map>

namespace tenon::jit {
namespace {

constexpr int64_t printRecords = 1 << 16, recordWords = 8;

/// One element as a GPU register holds it: a small float is an f32.
std::string elementText(const std::string &type, bool isUnsigned, int64_t bits) {
  auto low = static_cast<uint32_t>(bits);
  if (type == "f64")
    return numberText(std::bit_cast<double>(bits));
  if (type[0] == 'f' || type == "bf16")
    return numberText(std::bit_cast<float>(low));
  if (type == "i1")
    return bits & 1 ? "true" : "false";
  if (type == "i64" || type == "index")
    return isUnsigned ? std::to_string(static_cast<uint64_t>(bits)) : std::to_string(bits);
  if (type == "i32")
    return isUnsigned ? std::to_string(low) : std::to_string(static_cast<int32_t>(low));
  if (type == "i16")
    return isUnsigned ? std::to_string(static_cast<uint16_t>(low)) : std::to_string(static_cast<int16_t>(low));
  return isUnsigned ? std::to_string(static_cast<uint8_t>(low)) : std::to_string(static_cast<int8_t>(low));
}

} // namespace

DeviceReports::DeviceReports(const lower::KernelInfo &info) : info_(info) {}

std::vector<int64_t> DeviceReports::initialWords() const {
  std::vector<int64_t> words(statusWords + (info_.gpu.prints.empty() ? 0 : 2 + printRecords * recordWords));
  if (!info_.gpu.prints.empty())
    words[statusWords + 1] = printRecords;
  return words;
}

void DeviceReports::read(std::span<const int64_t> words) const {
  Reports reports;
  if (!info_.gpu.prints.empty()) {
    std::span<const int64_t> prints = words.subspan(statusWords);
    int64_t count = std::min(prints[0], prints[1]);
    // The elements of one execution of one print by one program instance: the n-th record of each element belongs to the
    // n-th execution.
    struct Printed {
      int64_t number;
      std::vector<int64_t> program;
      std::map<int64_t, int64_t> bits;
    };
    std::vector<Printed> all;
    std::map<std::vector<int64_t>, std::vector<size_t>> executions;
    for (int64_t i = 0; i < count; ++i) {
      std::span<const int64_t> record = prints.subspan(2 + i * recordWords, recordWords);
      std::vector<int64_t> key(record.begin(), record.begin() + 4);
      std::vector<size_t> &known = executions[key];
      size_t at = 0;
      while (at < known.size() && all[known[at]].bits.contains(record[4]))
        ++at;
      if (at == known.size()) {
        known.push_back(all.size());
        all.push_back({record[0], {record.begin() + 1, record.begin() + 4}, {}});
      }
      all[known[at]].bits[record[4]] = record[5];
    }
    for (const Printed &printed : all) {
      const auto &print = info_.gpu.prints[printed.number];
      std::string text = tileText(print.shape, [&](int64_t at) {
        auto found = printed.bits.find(at);
        return found == printed.bits.end() ? "?" : elementText(print.element, print.isUnsigned, found->second);
      });
      reports.print(print.label + " " + tupleText(printed.program) + ": " + text);
    }
    if (prints[0] > prints[1])
      reports.print("(" + std::to_string(prints[0] - prints[1]) + " more elements were printed than there is room for)");
  }
  if (int64_t number = words[0]) {
    const auto &check = info_.gpu.asserts[number - 1];
    reports.fail(assertionText(check.message, check.where, words.subspan(1, 3), words.subspan(4, check.rank)));
  }
  reports.raise();
}

} // namespace tenon::jit
