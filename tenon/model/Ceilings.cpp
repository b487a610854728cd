// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/Ceilings.h"

#include <algorithm>
#include <cctype>

namespace tenon::model {
namespace {

/// A GPU by its vendor's datasheet: TFLOP/s dense at the boost clock. The rate of the L2 cache is in no datasheet: 64
/// bytes a clock for each multiprocessor, up to what has been measured on its kind.
struct Sheet {
  const char *name; ///< found in the driver's name for it
  const char *architecture;
  int multiprocessors;
  double gigahertz, terabytesPerSecond, l2Megabytes, l2TerabytesPerSecond;
  double f64Matrix, tf32Matrix, halfMatrix, f8Matrix, i8Matrix; ///< half: f16, and bf16 from sm_80 on
  double f64Vector, f32Vector;
};
constexpr Sheet sheets[] = {
    {"B200", "sm_100", 148, 1.965, 8.0, 126, 20, 40, 1125, 2250, 4500, 4500, 40, 80},
    {"GH200", "sm_90a", 132, 1.98, 4.9, 50, 11, 67, 494.7, 989.4, 1978.9, 1978.9, 33.5, 66.9},
    {"H200", "sm_90a", 132, 1.98, 4.8, 50, 11, 67, 494.7, 989.4, 1978.9, 1978.9, 33.5, 66.9},
    {"H100 PCIe", "sm_90a", 114, 1.755, 2.0, 50, 9, 51.2, 378, 756, 1513, 1513, 25.6, 51.2},
    {"H100", "sm_90a", 132, 1.98, 3.35, 50, 11, 67, 494.7, 989.4, 1978.9, 1978.9, 33.5, 66.9},
    {"L40S", "sm_89", 142, 2.52, 0.864, 96, 5, 1.4, 183, 362, 733, 733, 1.4, 91.6},
    {"RTX 4090", "sm_89", 128, 2.52, 1.008, 72, 5, 1.3, 82.6, 165.2, 330.3, 660.6, 1.3, 82.6},
    {"L4", "sm_89", 58, 2.04, 0.3, 48, 2, 0.5, 60, 121, 242, 242, 0.5, 30.3},
    {"A100-SXM4-80GB", "sm_80", 108, 1.41, 2.039, 40, 7, 19.5, 156, 312, 0, 624, 9.7, 19.5},
    {"A100", "sm_80", 108, 1.41, 1.555, 40, 7, 19.5, 156, 312, 0, 624, 9.7, 19.5},
    {"RTX 3090", "sm_86", 82, 1.695, 0.936, 6, 2, 0.56, 35.6, 71, 0, 284, 0.56, 35.6},
    {"A10", "sm_86", 72, 1.695, 0.6, 6, 2, 0.49, 62.5, 125, 0, 250, 0.49, 31.2},
    {"T4", "sm_75", 40, 1.59, 0.32, 4, 1.3, 0, 0, 65, 0, 130, 0.25, 8.1},
    {"V100", "sm_70", 80, 1.53, 0.9, 6, 2.1, 0, 0, 125, 0, 0, 7.8, 15.7},
};

/// Architectures, and the GPU that stands for each.
constexpr std::pair<std::string_view, const char *> usualNames[] = {
    {"sm_70", "V100"},  {"sm_75", "T4"},    {"sm_80", "A100-SXM4-80GB"}, {"sm_86", "RTX 3090"}, {"sm_89", "L40S"},
    {"sm_90", "H100"},  {"sm_90a", "H100"}, {"sm_100", "B200"},          {"sm_100a", "B200"},
};
const char *usualName(std::string_view architecture) {
  for (auto [name, device] : usualNames)
    if (name == architecture)
      return device;
  return nullptr;
}

/// Whether a name has these words: "NVIDIA L40" has not "L4".
bool hasWords(std::string_view name, std::string_view words) {
  auto isOfWord = [](unsigned char c) { return std::isalnum(c) != 0; };
  auto isSame = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  for (auto from = name.begin();;) {
    auto found = std::search(from, name.end(), words.begin(), words.end(), isSame);
    if (found == name.end())
      return false;
    auto behind = found + static_cast<ptrdiff_t>(words.size());
    if ((found == name.begin() || !isOfWord(found[-1])) && (behind == name.end() || !isOfWord(*behind)))
      return true;
    from = found + 1;
  }
}

size_t at(Precision precision) { return static_cast<size_t>(precision); }

} // namespace

double Ceilings::memoryRate(double readBytes, double writtenBytes) const {
  double total = readBytes + writtenBytes;
  double copied = total > 0 ? std::min(1.0, 2 * writtenBytes / total) : 0;
  return 1 / (copied / memory().copyBytesPerSecond + (1 - copied) / memory().readBytesPerSecond);
}

double Ceilings::matrixRate(Precision precision) const {
  if (double rate = matrix[at(precision)]; rate > 0)
    return rate;
  // Tensor cores know tf32 where they do not know f32: exact f32 products are the vector units'.
  return vectorRate(precision);
}

double Ceilings::vectorRate(Precision precision) const {
  if (double rate = vector[at(precision)]; rate > 0)
    return rate;
  return vector[at(Precision::f32)];
}

std::optional<Ceilings> gpuDatasheet(std::string_view nameOrArchitecture) {
  const char *usual = usualName(nameOrArchitecture);
  std::string_view wanted = usual ? std::string_view(usual) : nameOrArchitecture;
  const Sheet *sheet = std::find_if(std::begin(sheets), std::end(sheets),
                                    [&](const Sheet &one) { return hasWords(wanted, one.name); });
  if (sheet == std::end(sheets) || (!usual && nameOrArchitecture.starts_with("sm_")))
    return std::nullopt;
  constexpr double tera = 1e12, mega = 1 << 20;
  Ceilings ceilings;
  ceilings.device = usual ? std::string("NVIDIA ") + sheet->name + " (datasheet)" : std::string(nameOrArchitecture);
  ceilings.isGpu = true;
  ceilings.processors = sheet->multiprocessors;
  ceilings.clockHertz = sheet->gigahertz * 1e9;
  double memory = sheet->terabytesPerSecond * tera, l2 = sheet->l2TerabytesPerSecond * tera;
  ceilings.levels = {{"L2", sheet->l2Megabytes * mega, l2, l2}, {"memory", 0, memory, memory}};
  ceilings.matrix[at(Precision::f64)] = sheet->f64Matrix * tera;
  ceilings.matrix[at(Precision::tf32)] = sheet->tf32Matrix * tera;
  ceilings.matrix[at(Precision::f16)] = sheet->halfMatrix * tera;
  bool hasBf16 = sheet->tf32Matrix > 0; // both came with sm_80
  ceilings.matrix[at(Precision::bf16)] = hasBf16 ? sheet->halfMatrix * tera : 0;
  ceilings.matrix[at(Precision::f8)] = sheet->f8Matrix * tera;
  ceilings.matrix[at(Precision::i8)] = sheet->i8Matrix * tera;
  ceilings.vector[at(Precision::f64)] = sheet->f64Vector * tera;
  ceilings.vector[at(Precision::f32)] = sheet->f32Vector * tera;
  double perClock = ceilings.clockHertz * sheet->multiprocessors;
  ceilings.special = 16 * perClock;
  ceilings.integer = 64 * perClock;
  ceilings.launchSeconds = 2.5e-6;
  ceilings.limits = gpuLimits(sheet->architecture);
  return ceilings;
}

std::vector<std::string> datasheetArchitectures() {
  std::vector<std::string> names;
  for (auto [name, device] : usualNames)
    names.emplace_back(name);
  return names;
}

std::vector<std::string> datasheetNames() {
  std::vector<std::string> names;
  for (const Sheet &sheet : sheets)
    names.emplace_back(sheet.name);
  return names;
}

} // namespace tenon::model
