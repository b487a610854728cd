// SPDX-License-Identifier: Apache-2.0
#include "RooflineText.h"

#include "Format.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::tool {
namespace {

/// 1.5e9, "FLOP" -> "1.5 GFLOP"
std::string quantity(double value, const char *unit) {
  constexpr const char *prefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  int step = 0;
  for (; value >= 999.5 && step < 6; value /= 1000)
    ++step;
  return fmt::format("{:.3g} {}{}", value, prefixes[step], unit);
}

/// 0.1666... is easier to believe as 1/6.
std::string intensityText(double intensity) {
  double inverse = 1 / intensity;
  if (intensity < 1 && std::abs(inverse - std::round(inverse)) < 1e-6 * inverse && inverse < 100)
    return fmt::format("1/{:.0f} = {:.3g}", inverse, intensity);
  return fmt::format("{:.4g}", intensity);
}

std::string percent(double share) { return fmt::format("{:.{}f}%", 100 * share, share < 0.0995 ? 1 : 0); }

std::string operationsText(const model::Counts &counts) {
  const model::Work &work = counts.useful;
  std::vector<std::string> parts;
  auto add = [&](double amount, const char *name) {
    if (amount > 0)
      parts.push_back(fmt::format("{} {}", name, quantity(amount, "")));
  };
  add(work.matrixFlops(), "matrix");
  add(work.vectorFlops(), "vector");
  add(work.specialFlops(), "special");
  std::string text = quantity(work.flops(), "FLOP") + (parts.empty() ? "" : ": " + joined(parts));
  if (work.integer > 0)
    text += fmt::format("; {} integer operations beside", quantity(work.integer, ""));
  if (double extra = counts.executed.flops() / std::max(work.flops(), 1.0) - 1; extra > 0.005)
    text += fmt::format("; {} more on padding", percent(extra));
  return text;
}

std::string bytesOf(const model::Counts &counts, bool written) {
  std::vector<std::string> names;
  double total = 0;
  bool exact = true;
  for (const model::ViewCounts &view : counts.views) {
    const model::Traffic &traffic = written ? view.written : view.read;
    if (traffic.compulsory <= 0)
      continue;
    names.push_back(view.name);
    total += traffic.compulsory;
    exact &= traffic.exact;
  }
  if (names.empty())
    return "";
  return fmt::format("{} {}{} ({})", written ? "written" : "read", exact ? "" : "at most ", quantity(total, "B"),
                     joined(names));
}

/// The sentence that the picture stands for.
std::string whyText(const RooflineFigures &figures) {
  const model::Counts &counts = figures.counts;
  const model::Cost::Term &bound = figures.roofs.front();
  double intensity = counts.intensity();
  if (bound.resource == "memory") {
    if (counts.useful.flops() <= 0)
      return "It does no floating-point arithmetic: moving the bytes is all there is to do.";
    return fmt::format(
        "Each byte that is moved is used for {} operations, and in the time that memory takes to move one the {} units "
        "could do {:.3g}. They wait {} of the time, so faster arithmetic would change nothing: only fewer bytes would "
        "(a narrower type, or fusing it with its neighbours).",
        intensityText(intensity), figures.arithmetic, figures.ridge, percent(1 - intensity / figures.ridge));
  }
  if (bound.resource == "special")
    return fmt::format("Division, exp and their like take many instructions each: {} of them at {} a second take "
                       "longer than moving the bytes.",
                       quantity(bound.amount, ""), quantity(bound.rate, ""));
  return fmt::format("Each byte that is moved is used for {:.4g} operations, more than the {:.4g} that the {} units do "
                     "in the time that memory takes to move one: the arithmetic decides.",
                     intensity, figures.ridge, bound.resource);
}

std::string ceilingsText(const RooflineFigures &figures) {
  const model::Ceilings &ceilings = figures.ceilings;
  std::string text;
  for (const auto &level : ceilings.levels) {
    std::string size = level.bytes > 0 ? " (" + bytesText(level.bytes) + ")" : "";
    text += fmt::format("  {:<22} {:>12} read, {} copied\n", level.name + size,
                        quantity(level.readBytesPerSecond, "B/s"), quantity(level.copyBytesPerSecond, "B/s"));
  }
  auto rate = [&](const std::string &name, double value, const char *unit) {
    if (value > 0)
      text += fmt::format("  {:<22} {:>12}\n", name, quantity(value, unit));
  };
  using enum model::Precision;
  for (model::Precision precision : {f64, f32, tf32, f16, bf16, f8, i8}) {
    double matrix = ceilings.matrix[static_cast<size_t>(precision)];
    double vector = ceilings.vector[static_cast<size_t>(precision)];
    bool isOwn = matrix > 0 && matrix != ceilings.vectorRate(f32);
    if (isOwn)
      rate(fmt::format("matrix {}", nameOf(precision)), matrix, "FLOP/s");
    if (precision == f32)
      rate("vector f32", vector, "FLOP/s");
  }
  rate("special functions", ceilings.special, "/s");
  return text;
}

std::string gpuText(const RooflineFigures &figures) {
  const model::Cost &cost = figures.cost;
  const model::BlockShape &block = figures.configuration.block;
  std::string text = fmt::format("\nOccupancy\n  blocks of {} threads, {}{} registers a thread, {} of shared memory\n",
                                 block.threads, figures.registersKnown ? "" : "about ", block.registersPerThread,
                                 bytesText(static_cast<double>(block.sharedBytes)));
  if (!cost.refusal.empty())
    return text + "  " + cost.refusal + "\n";
  text += fmt::format("  {} block{} on a multiprocessor, {} of its warps: limited by {}\n", cost.occupancy.blocks,
                      cost.occupancy.blocks == 1 ? "" : "s", percent(cost.occupancy.fraction), cost.occupancy.limiter);
  const model::Waves &waves = cost.waves;
  text += fmt::format("  {:.0f} blocks in {:.2f} waves of {:.0f}", waves.blocks, waves.waves, waves.perWave);
  if (waves.tailBlocks > 0)
    text += fmt::format(": the last has {:.0f} blocks ({} of a wave), and {} of the device's time is used",
                        waves.tailBlocks, percent(waves.tailBlocks / waves.perWave), percent(waves.efficiency));
  else
    text += ": all full";
  return text + "\n";
}

} // namespace

std::string textOf(const RooflineFigures &figures) {
  const model::Counts &counts = figures.counts;
  std::string text = fmt::format("{} on {}\n\nWhat it must do\n", figures.one.label(), figures.ceilings.device);
  text += "  " + operationsText(counts) + "\n";
  std::vector<std::string> bytes;
  for (bool written : {false, true})
    if (std::string part = bytesOf(counts, written); !part.empty())
      bytes.push_back(part);
  text += fmt::format("  {}: {}\n", quantity(counts.bytes(), "B"), joined(bytes));
  if (counts.requestedBytes() > 1.005 * counts.bytes())
    text += fmt::format("  its tiles ask for {}: {:.1f} times each byte\n", quantity(counts.requestedBytes(), "B"),
                        counts.requestedBytes() / counts.bytes());
  text += fmt::format("  {} FLOP per byte\n", intensityText(counts.intensity()));
  for (const std::string &note : counts.notes)
    text += "  " + note + "\n";

  text += fmt::format("\nWhat the machine can do ({})\n", figures.ceilings.measured ? "measured" : "datasheet");
  text += ceilingsText(figures);
  text += fmt::format("  arithmetic decides from {:.3g} FLOP per byte on\n", figures.ridge);

  text += fmt::format("\nBound by {}\n  {}\n", figures.boundBy(), whyText(figures));
  std::vector<std::string> needs;
  for (const model::Cost::Term &roof : figures.roofs)
    needs.push_back(fmt::format("{} {}", roof.resource, secondsText(roof.seconds)));
  text += fmt::format("  Each alone would need: {}\n", joined(needs));
  text += fmt::format("  It cannot take less than {}", secondsText(figures.least()));
  if (counts.useful.flops() > 0)
    text += fmt::format(", which is {}", quantity(counts.useful.flops() / figures.least(), "FLOP/s"));
  text += fmt::format("; the model expects {}", std::isfinite(figures.cost.seconds) ? secondsText(figures.cost.seconds)
                                                                                    : std::string("it not to run"));
  if (figures.cost.boundBy != figures.boundBy() && std::isfinite(figures.cost.seconds))
    text += fmt::format(" with these tiles, bound by {}", figures.cost.boundBy);
  text += "\n";
  if (figures.ceilings.isGpu)
    text += gpuText(figures);

  if (!figures.failure.empty())
    return text + "\nNot measured: " + figures.failure + "\n";
  if (!figures.seconds)
    return text;
  text += fmt::format("\nMeasured, after its results were verified\n  {} ({} trials, {} caches): {}, {}\n",
                      secondsText(*figures.seconds), figures.trials, figures.cold ? "cold" : "possibly warm",
                      quantity(counts.bytes() / figures.seconds->median, "B/s"),
                      quantity(counts.useful.flops() / figures.seconds->median, "FLOP/s"));
  double fraction = figures.fraction();
  if (fraction > 1)
    return text + fmt::format("  {} of the {} roof: it went faster than the ceiling that was measured; its data was in "
                              "a cache, or the ceiling was measured at a bad moment (--remeasure)\n",
                              percent(fraction), figures.boundBy());
  return text + fmt::format("  {} of the {} roof: {} away from it\n", percent(fraction), figures.boundBy(),
                            percent(1 - fraction));
}

} // namespace tenon::tool
