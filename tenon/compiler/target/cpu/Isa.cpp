// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Isa.h"

#include "tenon/base/Error.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace tenon::cpu {
namespace {

bool hasAll(const llvm::StringMap<bool> &features, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (!features.lookup(name))
      return false;
  return true;
}

} // namespace

Isa presetIsa(const std::string &name) {
  Isa isa;
  isa.name = name;
  if (name == "avx512" || name == "avx512-dot") {
    isa.cpu = "x86-64-v4";
    isa.features = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt";
    if (name == "avx512-dot") {
      isa.features += ",+avx512vnni,+avx512bf16";
      isa.dotsBf16 = isa.dotsBytes = true;
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
  } else if (name == "scalar") {
    isa.vectorBytes = 4;
  } else {
    throw Error("unknown instruction set \"" + name + "\": use avx512, avx2 or baseline");
  }
  return isa;
}

Isa selectIsa(const std::string &limit) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  bool avx512 = hasAll(features, {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c"});
  bool avx2 = hasAll(features, {"avx2", "fma", "f16c"});
  std::string name = limit;
  if (limit == "native")
    name = avx512 ? "avx512" : avx2 ? "avx2" : "baseline";
  else if (limit != "avx512" && limit != "avx2" && limit != "baseline")
    throw Error("unknown instruction set \"" + limit + "\": use native, avx512, avx2 or baseline");
  if ((name == "avx512" && !avx512) || (name == "avx2" && !avx2))
    throw Error("this processor does not have " + name + ": use native");
  Isa isa = presetIsa(name);
  isa.streams = true;
  if (name == "avx512") {
    // Everything the processor has, in a fixed order so that equal machines have equal cache keys.
    std::vector<std::string> names;
    for (const auto &feature : features)
      names.push_back((feature.second ? "+" : "-") + feature.first().str());
    std::sort(names.begin(), names.end());
    isa.features.clear();
    for (const std::string &feature : names)
      isa.features += (isa.features.empty() ? "" : ",") + feature;
    isa.cpu = llvm::sys::getHostCPUName().str();
    isa.dotsBf16 = features.lookup("avx512bf16");
    isa.dotsBytes = features.lookup("avx512vnni");
  }
  return isa;
}

} // namespace tenon::cpu
