// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/BuildId.h"

#include "tenon/base/Error.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>

namespace tenon::jit {
namespace {

struct Search {
  uintptr_t address; ///< of something inside the object looked for
  std::string found;
};

/// The GNU build id among the notes of one loaded object, if the object holds the address.
int visit(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &segment = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    here |= segment.p_type == PT_LOAD && search.address >= begin && search.address < begin + segment.p_memsz;
  }
  if (!here)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *at = reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr), *end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof(note));
      const char *name = at + sizeof(note), *description = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        search.found.assign(description, note.n_descsz);
      at = description + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

} // namespace

const std::string &buildId() {
  static const std::string id = [] {
    Search search{reinterpret_cast<uintptr_t>(&buildId), ""};
    dl_iterate_phdr(visit, &search);
    if (search.found.empty())
      throw InternalError("this build has no build id; link with --build-id");
    return search.found;
  }();
  return id;
}

} // namespace tenon::jit
