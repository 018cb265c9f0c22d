// A call graph with what was allocated in each function and below it.
#pragma once

#include "util/prelude.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

struct GraphFunction {
  std::string name;
  std::string file;                  // empty: unknown
  std::string module;                // path; empty: unknown
  uint64_t total = 0;                // over all stacks that contain it
  std::map<uint64_t, uint64_t> own;  // by line: over the stacks that end in it
};

struct GraphCall {
  uint64_t total = 0;  // over all stacks with this call
  // Allocations made through it. A stack whose report does not tell them counts as one.
  uint64_t allocations = 0;
};

struct CallGraph {
  // Key: caller, line in the caller, callee. A stack with the same call twice counts once.
  using Calls = std::map<std::tuple<size_t, uint64_t, size_t>, GraphCall>;

  std::vector<GraphFunction> functions;
  Calls calls;
  // Over all stacks in which the first calls the second, on whatever lines. A stack counts once.
  std::map<std::pair<size_t, size_t>, uint64_t> edges;
};

// Makes the call graph. Identifies functions by name, file and module; an inlined function belongs
// to the module it is inlined into.
CallGraph call_graph(const Stacks& stacks, const analyze::Table& table);

// A call graph for Graphviz.

// Returns the functions and calls that are at least `percent` of the whole.
std::string dot(const Stacks& stacks, const CallGraph& graph, double percent);

// JSON for gprof2dot (gprof2dot -f json).

std::string gprof2dot(const Stacks& stacks, const analyze::Table& table);

// Callgrind's profile format 1, for kcachegrind and callgrind_annotate.
std::string callgrind(const Stacks& stacks, const CallGraph& graph);

// pprof's profile.proto, gzip-compressed
// (https://github.com/google/pprof/blob/main/proto/profile.proto).

// Returns a profile with the usual sample types of heap profiles (alloc_objects, alloc_space,
// inuse_objects, inuse_space), preceded by the requested one if it is another. `nanoseconds`: when
// the report was taken, since 1970. `responsible`: tells pprof which frames to leave out of its
// views; null: none. `shown`: the sample type that pprof shows first, unless another was requested.
// Throws std::runtime_error when compression fails.
std::string pprof(const Stacks& stacks, const analyze::Table& table, int64_t nanoseconds,
                  const analyze::Responsible* responsible, const char* shown = "inuse_space");

// Compresses `text` in gzip format.
std::string gzip(const std::string& text);

}  // namespace mtrace::exporting
