// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/Nvtx.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace tenon::profile {
namespace {

// Numbers of version 3 of the protocol.
constexpr uint32_t callbacksTable = 1, versionTable = 3;
constexpr int coreModule = 1;
constexpr unsigned pushSlot = 9, popSlot = 11, coreSlots = 16;

using Slot = void (*)();
Slot slots[coreSlots];
Slot *slotAddresses[coreSlots + 1];

int functionTable(int module, Slot ***table, unsigned *size) {
  if (module != coreModule)
    return 0;
  for (unsigned i = 0; i < coreSlots; ++i)
    slotAddresses[i] = &slots[i];
  *table = slotAddresses;
  *size = coreSlots;
  return 1;
}

struct Callbacks {
  size_t bytes = sizeof(Callbacks);
  int (*getModuleFunctionTable)(int, Slot ***, unsigned *) = functionTable;
};

struct Version {
  size_t bytes = sizeof(Version);
  uint32_t version = 3;
  uint32_t reserved = 0;
  void (*setToolVersion)(uint32_t) = [](uint32_t) {};
};

const void *exportTable(uint32_t number) {
  static const Callbacks callbacks;
  static const Version version;
  return number == callbacksTable ? static_cast<const void *>(&callbacks)
         : number == versionTable ? static_cast<const void *>(&version)
                                  : nullptr;
}

bool connect() {
  const char *path = std::getenv("NVTX_INJECTION64_PATH");
  if (!path || !*path)
    return false;
  void *library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return false;
  using Initialize = int(const void *(*)(uint32_t));
  auto *initialize = reinterpret_cast<Initialize *>(::dlsym(library, "InitializeInjectionNvtx2"));
  return initialize && initialize(exportTable) && slots[pushSlot] && slots[popSlot];
}

} // namespace

bool startNvtx() {
  static const bool connected = connect();
  return connected;
}

void pushNvtx(const char *name) { reinterpret_cast<int (*)(const char *)>(slots[pushSlot])(name); }
void popNvtx() { reinterpret_cast<int (*)()>(slots[popSlot])(); }

} // namespace tenon::profile
