// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/KernelCache.h"

#include <algorithm>

namespace tenon::jit {
namespace {

/// Both halves of a product of 128 bits: every bit of a word reaches the low ones, by which slots are chosen.
uint64_t hashOf(std::span<const uint64_t> key) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (uint64_t word : key) {
    auto product = static_cast<unsigned __int128>(hash ^ word) * 0xd6e8feb86659fd93u;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    hash += 0x9e3779b97f4a7c15u; // or a zero would stay one
  }
  return hash;
}

} // namespace

KernelCache &KernelCache::of(const Kernel &kernel) {
  auto &place = *static_cast<CompiledPlace *>(kernel.compiled().get());
  std::call_once(place.once, [&] { place.object = std::make_shared<KernelCache>(kernel); });
  return *static_cast<KernelCache *>(place.object.get());
}

const std::shared_ptr<Executable> *KernelCache::find(std::span<const uint64_t> key) const noexcept {
  const Table *table = table_.load(std::memory_order_acquire);
  if (!table)
    return nullptr;
  uint64_t hash = hashOf(key);
  for (size_t at = hash & table->mask;; at = (at + 1) & table->mask) {
    const Entry *entry = table->slots[at].load(std::memory_order_acquire);
    if (!entry)
      return nullptr;
    if (entry->hash == hash && std::ranges::equal(entry->key, key)) [[likely]]
      return &entry->executable;
  }
}

const std::shared_ptr<Executable> &
KernelCache::findOrMake(std::span<const uint64_t> key, const std::function<std::shared_ptr<Executable>()> &make) {
  std::lock_guard lock(mutex_);
  if (const auto *found = find(key))
    return *found;
  entries_.push_back(std::make_unique<const Entry>(Entry{hashOf(key), {key.begin(), key.end()}, make()}));
  const Entry *entry = entries_.back().get();
  if (!tables_.empty() && 2 * entries_.size() <= tables_.back()->slots.size()) {
    tables_.back()->insert(entry);
    return entry->executable;
  }
  auto larger = std::make_unique<Table>(tables_.empty() ? 8 : 2 * tables_.back()->slots.size());
  for (const auto &each : entries_)
    larger->insert(each.get());
  tables_.push_back(std::move(larger));
  table_.store(tables_.back().get(), std::memory_order_release);
  return entry->executable;
}

void KernelCache::Table::insert(const Entry *entry) {
  size_t at = entry->hash & mask;
  while (slots[at].load(std::memory_order_relaxed))
    at = (at + 1) & mask;
  slots[at].store(entry, std::memory_order_release);
}

} // namespace tenon::jit
