// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/measure/PeerProcess.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

using namespace tenon;
using Json = PeerProcess::Json;

namespace {

constexpr double patience = 300; ///< in seconds, where an answer will come, however busy the machine is

std::vector<std::string> fakePeer() { return {"python3", TENON_PEER_SCRIPT, "fake"}; }

Json caseOf(const char *kernel) {
  return {{"case", {{"kernel", kernel}, {"shape", {16, 64}}, {"bytes", 4096}, {"sets", 1}, {"graph", 0}}},
          {"peer", "torch_eager"}};
}

std::string errorOf(const std::function<void()> &function) {
  try {
    function();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}
#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

TEST(PeerProcess, AsksAndIsAnswered) {
  PeerProcess peer(fakePeer(), patience);
  EXPECT_EQ(peer.greeting()["framework"], "fake");
  EXPECT_TRUE(peer.greeting()["versions"].contains("python"));
  Json ready = peer.ask(caseOf("fast"), patience);
  EXPECT_EQ(ready["ready"], true);
  EXPECT_EQ(ready["variant"], "torch_eager");
  for (int i = 0; i < 100; ++i)
    EXPECT_DOUBLE_EQ(peer.ask({{"burst", true}}, patience)["ms"].get<double>(), 0.1);
  peer.ask(caseOf("slow"), patience);
  EXPECT_DOUBLE_EQ(peer.ask({{"burst", true}}, patience)["ms"].get<double>(), 1.0);
}

TEST(PeerProcess, AFailureIsAnAnswer) {
  PeerProcess peer(fakePeer(), patience);
  EXPECT_EQ(peer.ask(caseOf("broken"), patience)["error"], "RuntimeError: out of everything");
  EXPECT_TRUE(peer.ask(Json::object(), patience).contains("error"));
  EXPECT_TRUE(peer.alive());
  EXPECT_EQ(peer.ask(caseOf("fast"), patience)["ready"], true);
}

TEST(PeerProcess, AMissingFrameworkIsSaid) {
  // Whichever of the two is not installed where the tests run; with both there, there is nothing to see.
  for (const char *framework : {"torch", "jax"}) {
    PeerProcess peer({"python3", TENON_PEER_SCRIPT, framework}, patience);
    if (!peer.greeting().contains("missing"))
      continue;
    Json answer = peer.ask(caseOf("softmax"), patience);
    EXPECT_EQ(answer["missing"], true);
    EXPECT_HAS(answer["error"].get<std::string>(), "not installed: ");
  }
}

TEST(PeerProcess, SilenceIsAnError) {
  PeerProcess peer(fakePeer(), patience);
  EXPECT_HAS(errorOf([&] { peer.ask(caseOf("silent"), 1); }), "did not answer within 1 s");
  EXPECT_FALSE(peer.alive());
  EXPECT_HAS(errorOf([&] { peer.ask(caseOf("fast"), 1); }), "not running any more");
}

TEST(PeerProcess, DeathIsAnErrorWithTheLastWords) {
  PeerProcess peer(fakePeer(), patience);
  EXPECT_HAS(errorOf([&] { peer.ask(caseOf("dies"), patience); }), "ended without an answer: cannot go on");
  EXPECT_FALSE(peer.alive());
}

/// Has closed its ears, so that every question to it breaks the pipe.
std::vector<std::string> deafPeer() { return {"sh", "-c", "exec 0<&-; echo '{}'; exec sleep 600"}; }

TEST(PeerProcess, ABrokenPipeEndsNobody) {
  static std::atomic<int> signals = 0;
  auto count = [](int) { ++signals; };
  void (*before)(int) = std::signal(SIGPIPE, count);
  PeerProcess peer(deafPeer(), patience);
  EXPECT_HAS(errorOf([&] { peer.ask(caseOf("fast"), patience); }), "ended before its next question");
  EXPECT_EQ(signals, 0) << "it is the library's own doing";
  ::raise(SIGPIPE);
  EXPECT_EQ(signals, 1) << "the program's own handler is still there";
  std::signal(SIGPIPE, before);
}

/// With the signal as every program has it, whose effect would be the end of the test.
TEST(PeerProcess, SeveralThreadsMeetBrokenPipes) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 10; ++i) {
        PeerProcess peer(deafPeer(), patience);
        // Or silence, where a process that another thread starts has the pipe for a moment, too.
        EXPECT_NE(errorOf([&] { peer.ask(caseOf("fast"), 0.2); }), "");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(PeerProcess, WhatCannotStart) {
  EXPECT_HAS(errorOf([] { PeerProcess({"/no/such/program"}, patience); }), "cannot start '/no/such/program'");
  EXPECT_HAS(errorOf([] { PeerProcess({"sh", "-c", "echo hello"}, patience); }), "'hello', which is no JSON object");
  EXPECT_HAS(errorOf([] { PeerProcess({"sh", "-c", "echo too bad >&2; exit 1"}, patience); }),
             "ended without an answer: too bad");
}

} // namespace
