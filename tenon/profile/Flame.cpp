// SPDX-License-Identifier: Apache-2.0
//
// Stacks of what a thread was doing (ranges, launches, compilations and their phases, runs), and for each device the
// ranges and launches that its kernels came from. The width of a box is time; its own time is what its children leave.
#include "tenon/profile/Analysis.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

namespace tenon {
namespace {

using namespace profile;
using Kind = ProfileEvent::Kind;

struct Node {
  int64_t own = 0;
  std::map<std::string, Node> children;
  int64_t total() const {
    int64_t sum = own;
    for (const auto &[name, child] : children)
      sum += child.total();
    return sum;
  }
};

/// A stack separates its frames by semicolons.
std::string frameOf(const ProfileEvent &event) {
  std::string name = event.name;
  std::replace(name.begin(), name.end(), ';', ',');
  switch (event.kind) {
  case Kind::launch: return "launch " + name;
  case Kind::submit: return "submit";
  case Kind::run: return name;
  case Kind::compile: return "compile " + name;
  case Kind::copy: return "copy " + name;
  case Kind::synchronize: return "wait for " + name;
  case Kind::phase:
  case Kind::fill:
  case Kind::range: return name;
  }
  return name;
}

Node treeOf(const ProfileData &data) {
  Nesting nesting(data);
  std::vector<Launch> launches = launchesOf(data, nesting);
  std::map<uint64_t, size_t> launchEvents;
  for (const Launch &launch : launches)
    launchEvents[data.events[launch.event].launch] = launch.event;
  auto pathOf = [&](size_t i) {
    std::vector<std::string> path;
    for (size_t at = i; at != Nesting::none; at = nesting.parent[at])
      path.push_back(frameOf(data.events[at]));
    std::reverse(path.begin(), path.end());
    return path;
  };
  Node root;
  for (size_t i = 0; i < data.events.size(); ++i) {
    const ProfileEvent &event = data.events[i];
    std::vector<std::string> path;
    int64_t own = event.end - event.begin;
    if (event.onDevice) {
      path.push_back(placeOf(event));
      if (auto found = launchEvents.find(event.launch); event.launch && found != launchEvents.end())
        for (size_t at = nesting.parent[found->second]; at != Nesting::none; at = nesting.parent[at])
          path.insert(path.begin() + 1, frameOf(data.events[at]));
      path.push_back(frameOf(event));
    } else {
      path = pathOf(i);
      size_t outermost = i;
      while (nesting.parent[outermost] != Nesting::none)
        outermost = nesting.parent[outermost];
      path.insert(path.begin(), "thread " + std::to_string(data.events[outermost].thread));
      own -= nesting.inside[i];
    }
    Node *node = &root;
    for (const std::string &frame : path)
      node = &node->children[frame];
    node->own += std::max<int64_t>(own, 0);
  }
  return root;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

/// The same name has the same colour in every picture.
std::string colourOf(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  char text[32];
  std::snprintf(text, sizeof text, "hsl(%u,62%%,72%%)", 12 + hash % 48 + (name.starts_with("wait") ? 190 : 0));
  return text;
}

} // namespace

std::string collapsedStacks(const ProfileData &data) {
  std::string text;
  std::function<void(const Node &, const std::string &)> write = [&](const Node &node, const std::string &path) {
    if (node.own >= 1000)
      text += path + " " + std::to_string(node.own / 1000) + "\n";
    for (const auto &[name, child] : node.children)
      write(child, path.empty() ? name : path + ";" + name);
  };
  write(treeOf(data), "");
  return text;
}

std::string flameGraph(const ProfileData &data) {
  constexpr double width = 1200, margin = 10, rowHeight = 18, charWidth = 6.6;
  Node root = treeOf(data);
  int64_t all = std::max<int64_t>(root.total(), 1);
  std::string boxes;
  int deepest = 0;
  char text[256];
  std::function<void(const Node &, const std::string &, double, int)> draw =
      [&](const Node &node, const std::string &name, double x, int depth) {
        int64_t total = node.total();
        double wide = (width - 2 * margin) * static_cast<double>(total) / static_cast<double>(all);
        if (wide < 0.3)
          return;
        deepest = std::max(deepest, depth);
        double y = margin + 24 + rowHeight * depth;
        std::snprintf(text, sizeof text,
                      "<g><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"2\" fill=\"%s\"/>", x, y,
                      std::max(wide - 0.5, 0.3), rowHeight - 1, colourOf(name).c_str());
        boxes += text;
        boxes += "<title>" + escaped(name) + ": " + timeText(static_cast<double>(total) * 1e-9) + " (" +
                 percentText(static_cast<double>(total) / static_cast<double>(all)) + "), itself " +
                 timeText(static_cast<double>(node.own) * 1e-9) + "</title>";
        auto fits = static_cast<size_t>(std::max(0.0, (wide - 6) / charWidth));
        if (fits >= 3) {
          std::string shown = name.size() <= fits ? name : name.substr(0, fits - 2) + "..";
          std::snprintf(text, sizeof text, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + 12.5);
          boxes += text + escaped(shown) + "</text>";
        }
        boxes += "</g>\n";
        for (const auto &[childName, child] : node.children) {
          draw(child, childName, x, depth + 1);
          x += (width - 2 * margin) * static_cast<double>(child.total()) / static_cast<double>(all);
        }
      };
  double x = margin;
  for (const auto &[name, child] : root.children) {
    draw(child, name, x, 0);
    x += (width - 2 * margin) * static_cast<double>(child.total()) / static_cast<double>(all);
  }
  double height = 2 * margin + 24 + rowHeight * (deepest + 1);
  std::snprintf(text, sizeof text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"monospace\" "
                "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fffdf8\"/>\n",
                width, height);
  std::string svg = text;
  svg += "<text x=\"10\" y=\"24\" font-size=\"14\">" + escaped(data.program) + ": " +
         timeText(static_cast<double>(data.nanoseconds) * 1e-9) + "; the width of a box is its time</text>\n";
  return svg + boxes + "</svg>\n";
}

} // namespace tenon
