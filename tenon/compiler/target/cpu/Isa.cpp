// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Isa.h"

#include "tenon/base/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::cpu {
namespace {

bool hasAll(const llvm::StringMap<bool> &features, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (!features.lookup(name))
      return false;
  return true;
}

/// The registers are large, and Linux gives them only to processes that ask. It refuses where a signal stack of some
/// thread could not hold them.
bool askForTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

constexpr const char *tileFeatures[] = {"amx-tile", "amx-bf16", "amx-int8"};

} // namespace

/// What all processors with AMX have, and what pays on them.
static void setAsWithAmx(Isa &isa) { isa.bringsRows = isa.bringsCached = isa.overlapsRows = isa.comparesHalves = true; }

Isa presetIsa(const std::string &name) {
  Isa isa;
  isa.name = name;
  if (name == "amx" || name == "avx512" || name == "avx512-dot") {
    isa.cpu = "x86-64-v4";
    isa.features = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt";
    if (name != "avx512") {
      isa.features += ",+avx512vnni,+avx512bf16";
      isa.dotsBf16 = isa.dotsBytes = true;
      isa.overlapsRows = isa.bringsCached = true;
    }
    if (name == "amx") {
      for (const char *feature : tileFeatures)
        isa.features += std::string(",+") + feature;
      isa.features += ",+avx512fp16"; // of every processor with AMX
      isa.tiles = TileUnit::hardware;
      setAsWithAmx(isa);
    }
    isa.vectorBytes = 64;
    isa.registers = 32;
    isa.masksSmallTypes = isa.masksWords = true;
  } else if (name == "avx2") {
    isa.cpu = "x86-64-v3";
    isa.features = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt";
    isa.vectorBytes = 32;
    isa.masksWords = true;
  } else if (name == "baseline") {
    isa.cpu = "x86-64";
  } else if (name == "amx-emulated") {
    isa = presetIsa("avx512");
    isa.name = name;
    isa.tiles = TileUnit::emulated;
    setAsWithAmx(isa);
  } else if (name == "scalar") {
    isa.vectorBytes = 4;
  } else {
    throw Error("unknown instruction set \"" + name + "\": use amx, avx512, avx2 or baseline");
  }
  return isa;
}

bool mayUseTiles() {
  static const bool may = [] {
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    return llvm::all_of(tileFeatures, [&](const char *name) { return features.lookup(name); }) && askForTiles();
  }();
  return may;
}

Isa selectIsa(const std::string &limit) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  bool avx512 = hasAll(features, {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c"});
  bool avx2 = hasAll(features, {"avx2", "fma", "f16c"});
  std::string best = avx512 ? "avx512" : avx2 ? "avx2" : "baseline";
  if (limit == "amx-emulated") {
    Isa isa = selectIsa(avx512 ? "avx512-dot" : best);
    isa.name = limit;
    isa.tiles = TileUnit::emulated;
    setAsWithAmx(isa);
    return isa;
  }
  std::string name = limit == "native" ? best : limit;
  if (name != "avx512" && name != "avx512-dot" && name != "avx2" && name != "baseline")
    throw Error("unknown instruction set \"" + limit +
                "\": use native, avx512, avx512-dot, avx2, baseline or amx-emulated");
  bool isAvx512 = name.starts_with("avx512");
  if ((isAvx512 && !avx512) || (name == "avx2" && !avx2))
    throw Error("this processor does not have " + name + ": use native");
  Isa isa = presetIsa(name);
  isa.streams = true;
  if (isAvx512) {
    // Everything the processor has and permits, in a fixed order so that equal machines have equal cache keys.
    bool tiles = name == "avx512" && mayUseTiles();
    std::vector<std::string> names;
    for (const auto &feature : features) {
      bool has = feature.second && (tiles || !feature.first().starts_with("amx-"));
      names.push_back((has ? "+" : "-") + feature.first().str());
    }
    std::sort(names.begin(), names.end());
    isa.features.clear();
    for (const std::string &feature : names)
      isa.features += (isa.features.empty() ? "" : ",") + feature;
    isa.cpu = llvm::sys::getHostCPUName().str();
    // Measured on an Emerald Rapids, where kernels of one loop gained up to a quarter; on a Zen 4 they lost a tenth.
    isa.bringsRows = name != "avx512-dot" && hasAll(features, {tileFeatures[0]});
    // Measured on a Zen 5: a softmax became up to 1.7 times as fast by the one, some loops three times by the other.
    // "avx512-dot" has both for tests.
    isa.overlapsRows = isa.bringsCached = isa.bringsRows || isa.cpu == "znver5" || name == "avx512-dot";
    isa.dotsBf16 = features.lookup("avx512bf16");
    isa.dotsBytes = features.lookup("avx512vnni");
    isa.comparesHalves = features.lookup("avx512fp16");
    isa.tiles = tiles ? TileUnit::hardware : TileUnit::none;
  }
  return isa;
}

} // namespace tenon::cpu
