// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Roofline.h"

#include "tenon/measure/Machine.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <thread>
#include <tuple>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

//===--- Peaks ----------------------------------------------------------------------------------------------------===//
// Independent chains of one instruction, more of them than its latency, so that every cycle begins as many as it can.

using PeakLoop = decltype(Peak::loop);

#if defined(__x86_64__)

// Empty assembly keeps the compiler from knowing a value, and from dropping what led to it.

__attribute__((target("avx512f"))) double fma512(int64_t rounds) {
  __m512 sums[16], x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  asm volatile("" : "+v"(x), "+v"(y));
#pragma unroll
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(x, y, sum);
  }
#pragma unroll
  for (__m512 &sum : sums)
    asm volatile("" : "+v"(sum));
  return 16 * 2 * 16;
}

__attribute__((target("avx2,fma"))) double fma256(int64_t rounds) {
  __m256 sums[12], x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  asm volatile("" : "+x"(x), "+x"(y));
#pragma unroll
  for (__m256 &sum : sums)
    sum = _mm256_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(x, y, sum);
  }
#pragma unroll
  for (__m256 &sum : sums)
    asm volatile("" : "+x"(sum));
  return 12 * 2 * 8;
}

double mulAdd128(int64_t rounds) {
  __m128 sums[12], x = _mm_set1_ps(0.5f);
  asm volatile("" : "+x"(x));
#pragma unroll
  for (__m128 &sum : sums)
    sum = _mm_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (__m128 &sum : sums)
      sum = _mm_add_ps(_mm_mul_ps(sum, x), x);
  }
#pragma unroll
  for (__m128 &sum : sums)
    asm volatile("" : "+x"(sum));
  return 12 * 2 * 4;
}

__attribute__((target("avx512f,avx512bf16"))) double dotBf16(int64_t rounds) {
  __m512 sums[16];
  __m512i bits = _mm512_set1_epi16(0x3f00); // 0.5
  asm volatile("" : "+v"(bits));
  auto x = reinterpret_cast<__m512bh>(bits);
#pragma unroll
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (__m512 &sum : sums)
      sum = _mm512_dpbf16_ps(sum, x, x);
  }
#pragma unroll
  for (__m512 &sum : sums)
    asm volatile("" : "+v"(sum));
  return 16 * 2 * 32;
}

__attribute__((target("avx512f,avx512vnni"))) double dotInt8(int64_t rounds) {
  __m512i sums[16], x = _mm512_set1_epi8(3);
  asm volatile("" : "+v"(x));
#pragma unroll
  for (__m512i &sum : sums)
    sum = _mm512_setzero_si512();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (__m512i &sum : sums)
      sum = _mm512_dpbusd_epi32(sum, x, x);
  }
#pragma unroll
  for (__m512i &sum : sums)
    asm volatile("" : "+v"(sum));
  return 16 * 2 * 64;
}

/// Eight tiles of 16 rows of 64 bytes. The kernel of the system hands the tile registers out on request.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

bool mayUseTiles() {
  constexpr int requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

// Four sums of a two by two block: two tiles of each operand.
__attribute__((target("amx-tile,amx-bf16"))) double tilesBf16(int64_t rounds) {
  TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0), _tile_zero(1), _tile_zero(2), _tile_zero(3);
  _tile_zero(4), _tile_zero(5), _tile_zero(6), _tile_zero(7);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * 32;
}

double tilesF32(int64_t rounds) { return tilesBf16(rounds) / 6; }

__attribute__((target("amx-tile,amx-int8"))) double tilesInt8(int64_t rounds) {
  TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0), _tile_zero(1), _tile_zero(2), _tile_zero(3);
  _tile_zero(4), _tile_zero(5), _tile_zero(6), _tile_zero(7);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * 64;
}

#endif

/// All threads at once, from the first one's start to the last one's end, by their own clocks: whoever only waits for
/// them may be woken late.
double operationsPerSecond(PeakLoop loop, int threads, double seconds) {
  loop(10000); // wakes wide units up
  int64_t rounds = 10000;
  for (double start = now(), taken = 0;; start = now()) {
    loop(rounds);
    taken = now() - start;
    if (taken >= seconds / 4 || rounds > (int64_t(1) << 40))
      break;
    rounds *= 2;
  }
  rounds *= 4;
  struct Span {
    double start = 0, end = 0, operations = 0;
  };
  double best = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::barrier ready(threads);
    std::vector<Span> spans(static_cast<size_t>(threads));
    {
      std::vector<std::jthread> workers;
      for (Span &span : spans)
        workers.emplace_back([&] {
          ready.arrive_and_wait();
          span.start = now();
          span.operations = loop(rounds) * static_cast<double>(rounds);
          span.end = now();
        });
    }
    Span all = spans[0];
    for (const Span &span : std::span(spans).subspan(1)) {
      all.start = std::min(all.start, span.start);
      all.end = std::max(all.end, span.end);
      all.operations += span.operations;
    }
    best = std::max(best, all.operations / (all.end - all.start));
  }
  return best;
}

bool has(const std::vector<std::string> &names, const char *name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

Peaks measurePeaks(int threads, double seconds) {
  Peaks peaks;
  auto consider = [&](Peak &peak, PeakLoop loop, const char *instructions) {
    double found = operationsPerSecond(loop, threads, seconds);
    if (found > peak.operationsPerSecond)
      peak = {found, instructions, loop};
  };
#if defined(__x86_64__)
  const Machine &machine = thisMachine();
  if (has(machine.isaLevels, "avx512"))
    consider(peaks.f32, fma512, "avx512 fma");
  else if (has(machine.isaLevels, "avx2"))
    consider(peaks.f32, fma256, "avx2 fma");
  else
    consider(peaks.f32, mulAdd128, "sse mul, add");
  peaks.bf16 = peaks.int8 = peaks.f32Products = peaks.f32;
  if (has(machine.isaExtras, "avx512-bf16"))
    consider(peaks.bf16, dotBf16, "avx512 bf16 dot");
  if (has(machine.isaExtras, "avx512-vnni"))
    consider(peaks.int8, dotInt8, "avx512 int8 dot");
  if (has(machine.isaExtras, "amx-bf16") && mayUseTiles()) {
    consider(peaks.bf16, tilesBf16, "amx bf16");
    if (double products = peaks.bf16.operationsPerSecond / 6; products > peaks.f32Products.operationsPerSecond)
      peaks.f32Products = {products, "amx bf16, six for one", tilesF32};
  }
  if (has(machine.isaExtras, "amx-int8") && mayUseTiles())
    consider(peaks.int8, tilesInt8, "amx int8");
#else
  consider(peaks.f32, [](int64_t rounds) {
    volatile float sum = 0;
    for (int64_t round = 0; round < rounds; ++round)
      sum = sum * 0.5f + 0.5f;
    return 2.0;
  }, "scalar");
  peaks.bf16 = peaks.int8 = peaks.f32Products = peaks.f32;
#endif
  return peaks;
}

double rateNow(const Peak &peak, int threads, double seconds) {
  // About 20 us, so that all end at about the same time, however fast each is.
  double operations = peak.loop(1);
  auto rounds = static_cast<int64_t>(2e-5 * peak.operationsPerSecond / operations) + 1;
  std::barrier ready(threads);
  std::vector<double> rates(static_cast<size_t>(threads));
  auto work = [&](double &rate) {
    ready.arrive_and_wait();
    int64_t done = 0;
    double start = now(), taken = 0;
    for (; taken < seconds; taken = now() - start) {
      peak.loop(rounds);
      done += rounds;
    }
    rate = operations * static_cast<double>(done) / taken;
  };
  {
    std::vector<std::jthread> others;
    for (double &rate : std::span(rates).subspan(1))
      others.emplace_back([&work, &rate] { work(rate); });
    work(rates[0]);
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

//===--- Copies ---------------------------------------------------------------------------------------------------===//

namespace {

#if defined(__x86_64__)
/// Stores that do not read the line first; the ends, which are no whole lines, are left to memcpy.
void streamingCopy(std::byte *to, const std::byte *from, size_t bytes) {
  size_t head = std::min<size_t>(-reinterpret_cast<uintptr_t>(to) % 64, bytes);
  std::memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
    __m128i line[4];
    for (int i = 0; i < 4; ++i)
      line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from) + i);
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i *>(to) + i, line[i]);
  }
  _mm_sfence();
  std::memcpy(to, from, bytes);
}
#else
void streamingCopy(std::byte *to, const std::byte *from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

/// The fastest of a few, as all are disturbed alike; each long enough to see work of so few `bytes` that it is over at
/// once.
double fastestOf(size_t bytes, const std::function<void()> &work) {
  size_t calls = std::clamp<size_t>((size_t(4) << 20) / std::max<size_t>(bytes, 1), 1, 1000);
  double fastest = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    double start = now();
    for (size_t i = 0; i < calls; ++i)
      work();
    double taken = now() - start;
    fastest = attempt ? std::min(fastest, taken) : taken;
  }
  return fastest;
}

/// Of the ways to go over `bytes` bytes the fastest, and whether it is so on one thread: work(way, alone).
template <class Way, class Work>
std::pair<Way, bool> fastestWay(std::initializer_list<Way> ways, int threads, size_t bytes, Work work) {
  std::pair<Way, bool> chosen;
  double best = 0;
  for (Way way : ways)
    for (bool alone : {false, true}) {
      if (alone && threads == 1)
        continue;
      double fastest = fastestOf(bytes, [&] { work(way, alone); });
      if (best == 0 || fastest < best) {
        best = fastest;
        chosen = {way, alone};
      }
    }
  return chosen;
}

/// work(first, last) for pieces of `bytes` bytes that cover them all, on all threads or on this one.
template <class Work> void inPieces(CpuPool &pool, bool alone, size_t bytes, Work work) {
  constexpr size_t piece = size_t(64) << 10;
  auto body = [&](int64_t begin, int64_t end) {
    work(static_cast<size_t>(begin) * piece, std::min(static_cast<size_t>(end) * piece, bytes));
  };
  auto pieces = static_cast<int64_t>((bytes + piece - 1) / piece);
  if (alone)
    return body(0, pieces);
  pool.run(pieces, 0, &body, [](void *context, int64_t begin, int64_t end, void *) {
    (*static_cast<decltype(body) *>(context))(begin, end);
  });
}

} // namespace

HostCopy::HostCopy(std::vector<std::pair<const void *, void *>> places, size_t bytes, int threads,
                   std::initializer_list<Stores> among)
    : places_(std::move(places)), bytes_(bytes), pool_(threads) {
  std::tie(stores_, alone_) =
      fastestWay(among, pool_.threads(), bytes, [&](Stores stores, bool alone) { copy(stores, alone); });
  way_ = stores_ == Stores::memcpy ? "memcpy" : "streaming stores";
  if (alone_)
    way_ += ", one thread";
}

void HostCopy::operator()() { copy(stores_, alone_); }

void HostCopy::copy(Stores stores, bool alone) {
  const auto &place = places_[turn_++ % places_.size()];
  const auto *from = static_cast<const std::byte *>(place.first);
  auto *to = static_cast<std::byte *>(place.second);
  inPieces(pool_, alone, bytes_, [&](size_t first, size_t last) {
    if (stores == Stores::streaming)
      streamingCopy(to + first, from + first, last - first);
    else
      std::memcpy(to + first, from + first, last - first);
  });
}

//===--- Reading --------------------------------------------------------------------------------------------------===//

namespace {

uint32_t sumOf(const std::byte *from, size_t bytes, size_t ahead) {
  uint32_t sum = 0;
#if defined(__x86_64__)
  __m128i sums[4] = {};
  for (; bytes >= 64; from += 64, bytes -= 64) {
    if (ahead)
      _mm_prefetch(reinterpret_cast<const char *>(from) + ahead, _MM_HINT_T1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sums[i] = _mm_add_epi32(sums[i], _mm_loadu_si128(reinterpret_cast<const __m128i *>(from) + i));
  }
  uint32_t words[16];
  std::memcpy(words, sums, sizeof words);
  for (uint32_t word : words)
    sum += word;
#endif
  for (; bytes >= 4; from += 4, bytes -= 4) {
    uint32_t word;
    std::memcpy(&word, from, 4);
    sum += word;
  }
  for (; bytes; ++from, --bytes)
    sum += static_cast<uint32_t>(*from);
  return sum;
}

} // namespace

HostRead::HostRead(std::vector<const void *> places, size_t bytes, int threads)
    : places_(std::move(places)), bytes_(bytes), pool_(threads) {
  std::tie(ahead_, alone_) = fastestWay({size_t(0), size_t(4) << 10, size_t(16) << 10}, pool_.threads(), bytes,
                                        [&](size_t ahead, bool alone) { read(ahead, alone); });
  way_ = "reading";
  if (ahead_)
    way_ += ", " + std::to_string(ahead_ >> 10) + " KiB ahead";
  if (alone_)
    way_ += ", one thread";
}

uint32_t HostRead::read(size_t ahead, bool alone) {
  const auto *from = static_cast<const std::byte *>(places_[turn_++ % places_.size()]);
  std::atomic<uint32_t> sum = 0; // whoever does not use it did not read it
  inPieces(pool_, alone, bytes_, [&](size_t first, size_t last) { sum += sumOf(from + first, last - first, ahead); });
  return sum;
}

} // namespace tenon
