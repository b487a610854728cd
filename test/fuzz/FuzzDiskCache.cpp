// SPDX-License-Identifier: Apache-2.0
// libFuzzer harness of the decoder of cache entries. What it accepts must be what the encoder writes, byte for byte.
// The checksum keeps random input from ever being accepted, so the same input also serves as the payload of a good
// entry and as the way to damage it.
#include "tenon/jit/DiskCache.h"

#include <algorithm>
#include <cstdlib>

using namespace tenon;

namespace {

void require(bool condition) {
  if (!condition)
    std::abort();
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const std::byte> input(reinterpret_cast<const std::byte *>(data), size);
  std::string key(64, '0');
  for (size_t i = 0; i < std::min<size_t>(size, 64); ++i)
    key[i] = "0123456789abcdef"[data[i] & 15];

  // As a file.
  for (const std::string &name : {std::string(64, '0'), key})
    if (auto payload = decodeEntry(input, name))
      require(same(encodeEntry(name, *payload), input));

  // As a payload.
  std::vector<std::byte> file = encodeEntry(key, input);
  auto payload = decodeEntry(file, key);
  require(payload && same(*payload, input));

  // As damage: the first bytes say where, the third what; an entry changed anywhere, cut or lengthened is refused.
  if (size < 3)
    return 0;
  size_t where = (data[0] | data[1] << 8) % file.size();
  std::vector<std::byte> damaged = file;
  damaged[where] ^= static_cast<std::byte>(data[2] ? data[2] : 1);
  require(!decodeEntry(damaged, key));
  require(!decodeEntry(std::span(file).first(where), key));
  file.push_back(std::byte(data[2]));
  require(!decodeEntry(file, key));
  return 0;
}
