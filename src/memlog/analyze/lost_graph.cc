#include "analyze/lost_graph.h"

#include <algorithm>
#include <utility>

namespace mtrace::analyze {
namespace {

// Strongly connected components by R. Tarjan's algorithm (SIAM Journal on Computing 1, 1972), with
// a stack of its own. Returns the component of each node; `count` gets how many there are.
std::vector<uint32_t> components(const LostGraph& graph, uint32_t* count) {
  constexpr uint32_t kNone = UINT32_MAX;
  const size_t nodes = graph.first.size() - 1;
  std::vector<uint32_t> order(nodes, kNone);
  std::vector<uint32_t> low(nodes);
  std::vector<uint32_t> component(nodes, kNone);
  std::vector<uint32_t> open;
  std::vector<std::pair<uint32_t, size_t>> path;  // node, next edge
  uint32_t next = 0;
  *count = 0;
  for (uint32_t root = 0; root < nodes; ++root) {
    if (order[root] != kNone) continue;
    path.emplace_back(root, graph.first[root]);
    while (!path.empty()) {
      const uint32_t node = path.back().first;
      size_t& edge = path.back().second;
      if (order[node] == kNone) {
        order[node] = low[node] = next++;
        open.push_back(node);
      }
      if (edge < graph.first[node + 1]) {
        const uint32_t to = graph.edges[edge++];
        if (order[to] == kNone) {
          path.emplace_back(to, graph.first[to]);
        } else if (component[to] == kNone) {
          low[node] = std::min(low[node], order[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        const uint32_t caller = path.back().first;
        low[caller] = std::min(low[caller], low[node]);
      }
      if (low[node] != order[node]) continue;
      uint32_t member;
      do {
        member = open.back();
        open.pop_back();
        component[member] = *count;
      } while (member != node);
      ++*count;
    }
  }
  return component;
}

}  // namespace

std::vector<uint32_t> heads_of(const LostGraph& graph) {
  constexpr uint32_t kNone = UINT32_MAX;
  const size_t nodes = graph.first.size() - 1;
  uint32_t count = 0;
  const std::vector<uint32_t> component = components(graph, &count);
  std::vector<bool> pointed_to(count);
  for (size_t node = 0; node < nodes; ++node) {
    for (size_t e = graph.first[node]; e < graph.first[node + 1]; ++e) {
      const uint32_t to = component[graph.edges[e]];
      if (to != component[node]) pointed_to[to] = true;
    }
  }
  std::vector<uint32_t> head(nodes, kNone);
  std::vector<uint32_t> heads;
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint32_t own = component[node];
    if (pointed_to[own]) continue;
    pointed_to[own] = true;  // by its first node
    head[node] = node;
    heads.push_back(node);
  }
  std::vector<uint32_t> left;
  for (const uint32_t first : heads) {
    left.assign(1, first);
    while (!left.empty()) {
      const uint32_t node = left.back();
      left.pop_back();
      for (size_t e = graph.first[node]; e < graph.first[node + 1]; ++e) {
        const uint32_t to = graph.edges[e];
        if (head[to] != kNone) continue;
        head[to] = first;
        left.push_back(to);
      }
    }
  }
  return head;
}

}  // namespace mtrace::analyze
