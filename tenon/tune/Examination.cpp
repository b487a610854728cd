// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Examination.h"

#include "tenon/base/Error.h"
#include "tenon/tune/Compare.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace tenon::tuning {
namespace {

using Json = nlohmann::ordered_json;

Tensor bytesOf(const MappedArena &arena) {
  return Tensor::borrow(arena.begin(), arena.bytes(), DType::u8, {static_cast<int64_t>(arena.bytes())});
}

Tensor imageOf(const std::string &path, size_t bytes, Device device) {
  MappedArena arena(path, bytes);
  return bytesOf(arena).to(device);
}

Tensor stretch(const Tensor &all, size_t from, size_t to) {
  return all.slice(0, static_cast<int64_t>(from), static_cast<int64_t>(to - from));
}

} // namespace

Json toJson(const std::vector<OutputPlace> &outputs) {
  Json list = Json::array();
  for (const OutputPlace &one : outputs)
    list.push_back({{"offset", one.offset},
                    {"elements", one.elements},
                    {"dtype", std::string(nameOf(one.dtype))},
                    {"name", one.name}});
  return list;
}

Examination::Examination(const Json &images, size_t bytes, Device device)
    : bytes_(bytes), device_(device), wantedPath_(images.at("wanted")),
      found_(images.at("found").get<std::string>(), bytes), first_(imageOf(images.at("first"), bytes, device)),
      second_(imageOf(images.at("second"), bytes, device)) {
  for (const Json &one : images.at("outputs"))
    outputs_.push_back({one.at("offset"), one.at("elements"), *parseDType(one.at("dtype").get<std::string>()),
                        one.at("name")});
}

Examination::~Examination() = default;

Tensor Examination::part(const Tensor &all, const OutputPlace &output, bool asBytes) const {
  auto *begin = static_cast<std::byte *>(all.data()) + output.offset;
  if (asBytes)
    return Tensor::borrow(begin, output.bytes(), DType::u8, {static_cast<int64_t>(output.bytes())}, {}, {}, device_);
  return Tensor::borrow(begin, output.bytes(), output.dtype, {output.elements}, {}, {}, device_);
}

std::optional<Examination::Complaint> Examination::damage(const Tensor &after, const Tensor &before) const {
  std::vector<OutputPlace> sorted = outputs_;
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.offset < b.offset; });
  size_t from = 0;
  for (size_t i = 0; i <= sorted.size(); ++i) {
    size_t to = i < sorted.size() ? sorted[i].offset : bytes_;
    if (to > from)
      if (auto at = firstDifferentByte(stretch(after, from, to), stretch(before, from, to))) {
        std::string where;
        if (i > 0 && *at < 4096)
          where = ", " + std::to_string(*at) + " bytes past the end of '" + sorted[i - 1].name + "'";
        else if (i < sorted.size() && to - from - *at <= 4096)
          where = ", " + std::to_string(to - from - *at) + " bytes before the start of '" + sorted[i].name + "'";
        return Complaint{"the candidate wrote outside its outputs" + where, true};
      }
    from = i < sorted.size() ? to + sorted[i].bytes() : bytes_;
  }
  return std::nullopt;
}

std::optional<Examination::Complaint> Examination::difference(const Tensor &one, const Tensor &other) const {
  for (const OutputPlace &output : outputs_)
    if (auto at = firstDifferentByte(part(one, output, true), part(other, output, true))) {
      size_t element = *at / sizeOf(output.dtype), from = output.offset + element * sizeOf(output.dtype);
      auto isAsBefore = [&](const Tensor &after, const Tensor &before) {
        size_t to = from + sizeOf(output.dtype);
        return !firstDifferentByte(stretch(after, from, to), stretch(before, from, to));
      };
      bool isUnwritten = isAsBefore(one, first_) && isAsBefore(other, second_);
      return Complaint{"the output '" + output.name + "' " +
                       (isUnwritten ? "was never written" : "differs between two runs on the same inputs") +
                       " at element " + std::to_string(element)};
    }
  return std::nullopt;
}

std::optional<Examination::Complaint> Examination::distance(const Tensor &after, const std::vector<double> &tolerances,
                                                            const std::vector<double> &relatives) {
  if (!wanted_)
    wanted_ = imageOf(wantedPath_, bytes_, device_);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputPlace &output = outputs_[i];
    if (!isFloat(output.dtype)) {
      if (auto at = firstDifferentByte(part(after, output, true), part(*wanted_, output, true)))
        return Complaint{"the output '" + output.name + "' is not that of the first candidate that was found right, at "
                         "element " + std::to_string(*at / sizeOf(output.dtype))};
      continue;
    }
    double far = mostApart(part(after, output, false), part(*wanted_, output, false), relatives[i]);
    if (!(far <= tolerances[i])) {
      char text[160];
      std::snprintf(text, sizeof text,
                    "' is up to %.4g further than rounding explains from that of the first candidate that was found "
                    "right; %.4g are allowed",
                    far, tolerances[i]);
      return Complaint{"the output '" + output.name + text};
    }
  }
  return std::nullopt;
}

void Examination::show(const Tensor &after) const { bytesOf(found_).copyFrom(after); }

} // namespace tenon::tuning
