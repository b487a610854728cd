// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/measure/Results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

using namespace tenon;

namespace {

using Json = nlohmann::ordered_json;

Json estimateJson(double median, double spread = 0.005) {
  return {{"median", median}, {"low", median * (1 - spread)}, {"high", median * (1 + spread)}};
}

Json row(const std::string &kernel, double median, double spread = 0.005) {
  return {{"kernel", kernel},
          {"shape", {64, 128}},
          {"dtype", "f32"},
          {"target", "cpu"},
          {"params", {{"cols", 128}}},
          {"flops", 8192.0},
          {"bytes", 65536.0},
          {"verdict", {{"passed", true}, {"reason", ""}}},
          {"failure", nullptr},
          {"time", {{"seconds", estimateJson(median, spread)}, {"trials", 12}, {"steady", true}}}};
}

Json file(std::vector<Json> rows) {
  return {{"schema", 1},
          {"tenon", "0.1.0"},
          {"command", "bench"},
          {"commit", "abc"},
          {"machine", {{"cpu", "A Processor"}, {"processors", 2}}},
          {"results", rows}};
}

Results parse(const Json &json) { return parseResults(json.dump(), "a.json"); }

std::string refusal(const std::string &text) {
  try {
    parseResults(text, "a.json");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Results, ReadsARow) {
  Results results = parse(file({row("softmax", 1e-3)}));
  EXPECT_EQ(results.machine, "A Processor, 2 processors");
  EXPECT_EQ(results.version, "0.1.0");
  EXPECT_EQ(results.commit, "abc");
  ASSERT_EQ(results.rows.size(), 1u);
  const ResultRow &one = results.rows[0];
  EXPECT_EQ(one.label(), "softmax 64x128 f32 cpu");
  EXPECT_EQ(one.status, ResultRow::Status::measured);
  ASSERT_TRUE(one.seconds);
  EXPECT_DOUBLE_EQ(one.seconds->median, 1e-3);
  EXPECT_EQ(one.trials, 12u);
  EXPECT_TRUE(one.verified);
  EXPECT_EQ(one.params.at("cols"), 128);
}

TEST(Results, ReadsGpuFiles) {
  Json one = row("softmax", 1e-3);
  one.erase("target");
  one["kind"] = "case";
  one["time"] = estimateJson(130e-6);
  one["graph_launches"] = 20;
  one["bytes"] = 5e8;
  Json compiled = {{"kind", "compile"}, {"kernel", "gelu"}};
  Json failed = {{"kind", "case"}, {"case", "gelu 8"}, {"failure", "no"}};
  Json all = file({one, compiled, failed});
  all["command"] = "bench gpu";
  all["gpu"] = {{"name", "NVIDIA H200"}, {"datasheet_bytes_per_s", 4.81e12}};
  Results results = parse(all);
  ASSERT_EQ(results.rows.size(), 2u); // what compiling costs is no row of a kernel
  EXPECT_EQ(results.rows[0].label(), "softmax 64x128 f32 cuda (graph)");
  EXPECT_TRUE(results.rows[0].seconds);
  EXPECT_EQ(results.rows[1].status, ResultRow::Status::failed);
  EXPECT_EQ(results.rows[1].reason, "no");
  EXPECT_EQ(results.machine, "A Processor, 2 processors, NVIDIA H200");

  // The same bytes in a twentieth of the time: no memory is as fast.
  all["results"][0]["time"] = estimateJson(6.5e-6);
  results = parse(all);
  EXPECT_EQ(results.rows[0].status, ResultRow::Status::impossible);
  EXPECT_FALSE(results.rows[0].seconds);
  EXPECT_NE(results.rows[0].reason.find("GB/s is more than the machine's peak"), std::string::npos);
}

TEST(Results, AWrongKernelHasNoTime) {
  Json one = row("softmax", 1e-3);
  one["verdict"] = {{"passed", false}, {"reason", "y is wrong"}};
  Results results = parse(file({one}));
  EXPECT_EQ(results.rows[0].status, ResultRow::Status::wrong);
  EXPECT_EQ(results.rows[0].reason, "y is wrong");
  EXPECT_FALSE(results.rows[0].seconds);
}

TEST(Results, OddTimesAreNoTimes) {
  for (const Json &time : {Json(nullptr), Json(3), Json(estimateJson(-1)), Json(estimateJson(0)),
                           Json{{"median", 1}, {"low", 2}, {"high", 3}}, Json{{"median", "fast"}}, Json::object()}) {
    Json one = row("softmax", 1e-3);
    one["time"] = time;
    Results results = parse(file({one}));
    EXPECT_FALSE(results.rows[0].seconds) << time;
    EXPECT_EQ(results.rows[0].status, ResultRow::Status::untimed) << time;
  }
}

TEST(Results, BadFilesAreRefusedInOneSentence) {
  std::string good = file({row("softmax", 1e-3)}).dump();
  EXPECT_EQ(refusal(good), "");
  for (size_t length = 1; length < good.size(); length += 7)
    EXPECT_NE(refusal(good.substr(0, length)).find("cut short"), std::string::npos) << length;
  EXPECT_NE(refusal("").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("\n \n").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("hello").find("is not JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1}").find("is not a results file"), std::string::npos);
  EXPECT_NE(refusal("[]").find("is not a results file"), std::string::npos);
  EXPECT_NE(refusal("null").find("is not a results file"), std::string::npos);
  Json newer = file({row("softmax", 1e-3)});
  newer["schema"] = 7;
  EXPECT_EQ(refusal(newer.dump()), "'a.json' has results of schema 7, written by Tenon 0.1.0, and this Tenon reads "
                                   "schema 1: measure again");
  newer["schema"] = "one";
  EXPECT_NE(refusal(newer.dump()).find("its schema is no number"), std::string::npos);
  newer["schema"] = 1;
  newer["results"] = 3;
  EXPECT_NE(refusal(newer.dump()).find("no list of results"), std::string::npos);
  newer["results"] = {1, nullptr, "x", {{"kernel", 3}}, Json::array()}; // nothing that is a row, and no crash
  EXPECT_TRUE(parse(newer).rows.empty());
  EXPECT_THROW(readResults("/nowhere/a.json"), Error);
  EXPECT_THROW(readResults("/"), Error);
}

TEST(Results, FilesWithoutASchemaAreOfTheFirst) {
  Json old = file({row("softmax", 1e-3)});
  old.erase("schema");
  EXPECT_EQ(parse(old).rows.size(), 1u);
}

TEST(Results, Impossible) {
  DatasheetPeaks peaks = gpuPeaks("NVIDIA H200");
  EXPECT_EQ(whyImpossible(1e-3, 900e9, 1e6, "bf16", peaks), "");
  EXPECT_NE(whyImpossible(1e-3, 1100e9, 1e6, "bf16", peaks), "");
  EXPECT_EQ(whyImpossible(1e-3, 1100e9, 1e6, "f8e4m3", peaks), "");
  EXPECT_NE(whyImpossible(1e-3, 0, 6e9, "bf16", peaks), "");
  EXPECT_EQ(whyImpossible(1e-6, 0, 6e6, "bf16", peaks), ""); // it fits the cache
  EXPECT_EQ(whyImpossible(1e-3, 1e18, 1e18, "bf16", DatasheetPeaks()), "");
  EXPECT_EQ(whyImpossible(0, 1, 1, "f32", peaks), "");
  EXPECT_NE(whyImpossible(1e-6, 1e12, 0, "f32", cpuPeaks(2, {})), "");
  EXPECT_EQ(whyImpossible(1, 500e9, 50e9, "f32", cpuPeaks(2, {})), "");
  // Products of f32 may be made of bf16 where there is AMX.
  EXPECT_NE(whyImpossible(1, 1000e9, 50e9, "f32", cpuPeaks(2, {"avx512-vnni"})), "");
  EXPECT_EQ(whyImpossible(1, 1000e9, 50e9, "f32", cpuPeaks(2, {"amx-bf16"})), "");
  EXPECT_NE(whyImpossible(1, 5000e9, 50e9, "f32", cpuPeaks(2, {"amx-bf16"})), "");
}

//===--- What changed ---------------------------------------------------------------------------------------------===//

Change changeOf(double before, double after, double spread = 0.005) {
  Results a = parse(file({row("gelu", before, spread)})), b = parse(file({row("gelu", after, spread)}));
  return compareResults(a, b).rows.at(0).change;
}

TEST(Compare, BeyondNoiseAndIntervals) {
  EXPECT_EQ(changeOf(1e-3, 1e-3), Change::same);
  EXPECT_EQ(changeOf(1e-3, 1.015e-3), Change::same); // intervals apart, but within the noise
  EXPECT_EQ(changeOf(1e-3, 1.05e-3), Change::slower);
  EXPECT_EQ(changeOf(1e-3, 0.95e-3), Change::faster);
  EXPECT_EQ(changeOf(1e-3, 1.05e-3, 0.1), Change::same); // the intervals overlap
}

TEST(Compare, RowsFindEachOther) {
  Json other = row("gelu", 9e-3);
  other["shape"] = {1, 2};
  Results before = parse(file({row("gelu", 1e-3), other, row("softmax", 1e-3)}));
  Results after = parse(file({row("rotary", 1e-3), other, row("gelu", 2e-3)}));
  FileChange change = compareResults(before, after);
  ASSERT_EQ(change.rows.size(), 4u);
  EXPECT_EQ(change.rows[0].change, Change::appeared);
  EXPECT_EQ(change.rows[1].change, Change::same);
  EXPECT_EQ(change.rows[2].change, Change::slower);
  EXPECT_DOUBLE_EQ(change.rows[2].ratio, 2);
  EXPECT_EQ(change.rows[3].change, Change::gone);
  EXPECT_TRUE(change.regression());
}

TEST(Compare, BrokenAndMended) {
  Json wrong = row("gelu", 1e-3);
  wrong["verdict"]["passed"] = false;
  Results good = parse(file({row("gelu", 1e-3)})), bad = parse(file({wrong}));
  EXPECT_EQ(compareResults(good, bad).rows[0].change, Change::broken);
  EXPECT_TRUE(compareResults(good, bad).regression());
  EXPECT_EQ(compareResults(bad, good).rows[0].change, Change::mended);
  EXPECT_FALSE(compareResults(bad, good).regression());
  EXPECT_EQ(compareResults(bad, bad).rows[0].change, Change::unmeasured);
  Json untimed = row("gelu", 1e-3);
  untimed["time"] = nullptr;
  EXPECT_FALSE(compareResults(good, parse(file({untimed}))).regression());
}

TEST(Compare, OtherMachinesAndNothingInCommon) {
  Json moved = file({row("gelu", 1e-3)});
  moved["machine"]["cpu"] = "B Processor";
  Results here = parse(file({row("gelu", 1e-3)})), there = parse(moved);
  EXPECT_THROW(compareResults(here, there), Error);
  EXPECT_EQ(compareResults(here, there, {}, /*otherMachine=*/true).remarks.size(), 1u);
  EXPECT_THROW(compareResults(here, parse(file({row("softmax", 1e-3)}))), Error);
}

TEST(Compare, Remarks) {
  Json doubtful = file({row("gelu", 1e-3)});
  doubtful["complete"] = false;
  doubtful["conditions"] = {{"complaint", "the neighbours were loud"}};
  doubtful["tenon"] = "0.2.0";
  doubtful["results"][0]["verdict"] = nullptr;
  auto remarks = compareResults(parse(file({row("gelu", 1e-3)})), parse(doubtful)).remarks;
  ASSERT_EQ(remarks.size(), 4u);
  EXPECT_NE(remarks[0].find("interrupted"), std::string::npos);
  EXPECT_NE(remarks[1].find("the neighbours were loud"), std::string::npos);
  EXPECT_NE(remarks[2].find("not verified"), std::string::npos);
  EXPECT_NE(remarks[3].find("0.2.0"), std::string::npos);
}

} // namespace
