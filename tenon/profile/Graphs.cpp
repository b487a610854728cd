// SPDX-License-Identifier: Apache-2.0
//
// A device tells of each run that a graph made the kernel's name, the number of the node, which stays the same from
// launch to launch, and that of the driver's call that launched the graph. The runs of one call are one turn of one
// graph: of the graphs whose kernels have these names, that which was launched next. Nodes are numbered as they were
// captured, so that of equal names the n-th node is the n-th captured launch:
//
//     captured:  softmax 8 MB, gelu 2 MB, softmax 4 MB
//     call 17:   node 31 softmax, node 32 gelu, node 33 softmax        31: 8 MB, 32: 2 MB, 33: 4 MB
#include "tenon/profile/Recorder.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

namespace tenon::profile {
namespace {

/// One launch of a graph on the device, by its nodes' numbers.
struct Turn {
  std::vector<Event *> runs;
  int64_t end = 0;
};

/// A graph that was launched in the profile's time.
struct Graph {
  std::vector<GraphKernel> kernels;
  std::vector<uint32_t> names;   ///< of them, sorted
  std::deque<Event *> launches; ///< whose runs have not been found yet
};

template <class Items> std::vector<uint32_t> sortedNames(const Items &items) {
  std::vector<uint32_t> names;
  for (const auto &item : items) {
    if constexpr (std::is_pointer_v<typename Items::value_type>)
      names.push_back(item->name);
    else
      names.push_back(item.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Matching {
public:
  explicit Matching(std::vector<Event> &events) {
    for (Event &event : events) {
      if (!event.graph)
        continue;
      if (event.kind == Kind::launch) {
        launches_.push_back(&event);
      } else if (event.foreign) {
        Turn &turn = turns_[{event.device, event.launch}];
        turn.runs.push_back(&event);
        turn.end = std::max(turn.end, event.end);
      }
    }
    std::sort(launches_.begin(), launches_.end(), [](Event *a, Event *b) { return a->begin < b->begin; });
    for (Event *launch : launches_) {
      auto [entry, isNew] = graphs_.try_emplace(launch->graph);
      if (isNew) {
        entry->second.kernels = graphKernels(launch->graph);
        entry->second.names = sortedNames(entry->second.kernels);
      }
      entry->second.launches.push_back(launch);
    }
    for (auto &[call, turn] : turns_)
      std::sort(turn.runs.begin(), turn.runs.end(), [](Event *a, Event *b) { return a->graph < b->graph; });
  }

  void match() {
    for (auto &[call, turn] : turns_)
      findLaunch(turn);
    for (auto &[call, turn] : turns_) // also where the profile began or ended in the middle of a turn
      for (Event *run : turn.runs)
        if (auto known = nodes_.find(run->graph); known != nodes_.end()) {
          run->bytes = known->second.kernel.bytes;
          run->flops = known->second.kernel.flops;
        }
  }

private:
  struct Node {
    uint64_t graph;
    GraphKernel kernel;
  };

  void findLaunch(Turn &turn) {
    Event *found = nullptr;
    auto consider = [&](Graph &graph) {
      Event *next = graph.launches.empty() ? nullptr : graph.launches.front();
      if (next && next->begin <= turn.end && next->device == turn.runs[0]->device &&
          (!found || next->begin < found->begin))
        found = next;
    };
    bool isKnown = false;
    if (auto known = nodes_.find(turn.runs[0]->graph); known != nodes_.end()) {
      isKnown = true;
      consider(graphs_[known->second.graph]);
    } else {
      std::vector<uint32_t> names = sortedNames(turn.runs);
      for (auto &[number, graph] : graphs_)
        if (graph.names == names)
          consider(graph);
    }
    for (Event *run : turn.runs)
      run->launch = found ? found->launch : 0;
    if (!found)
      return;
    Graph &graph = graphs_[found->graph];
    graph.launches.pop_front();
    if (!isKnown)
      learnNodes(turn, found->graph, graph);
  }

  void learnNodes(const Turn &turn, uint64_t number, const Graph &graph) {
    std::map<uint32_t, size_t> next; // by name: where among the kernels to look from
    for (const Event *run : turn.runs) {
      size_t &at = next[run->name];
      while (graph.kernels[at].name != run->name)
        ++at;
      nodes_[run->graph] = {number, graph.kernels[at++]};
    }
  }

  std::vector<Event *> launches_;
  std::map<uint64_t, Graph> graphs_;                      ///< by number
  std::map<std::pair<int8_t, uint64_t>, Turn> turns_;     ///< by the device and the driver's call: in its order
  std::unordered_map<uint64_t, Node> nodes_;
};

} // namespace

void matchGraphs(std::vector<Event> &events) { Matching(events).match(); }

} // namespace tenon::profile
