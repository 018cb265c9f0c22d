// Stacks with one number each: the input of profiles for other tools.
#pragma once

#include "util/prelude.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"

namespace mtrace::exporting {

// A place in the program. Texts are escaped as in a memlog, so they are UTF-8 without control
// bytes.
struct Location {
  std::string function;  // never empty: module+0xoffset if unknown
  std::string file;      // empty: unknown
  uint64_t line = 0;
  size_t module = 0;    // index in Stacks::table.modules(), or kNoModule
  uint64_t offset = 0;  // ELF address in the module, or address; 0: inlined

  static constexpr size_t kNoModule = SIZE_MAX;
  bool operator==(const Location&) const = default;
};

// Collects the places of stacks, each once.
class Locations {
 public:
  // Takes modules from `table`; appends locations to `all`. Both must outlive this.
  // `responsible`: folds stacks, and shortens names; null: all frames.
  Locations(const analyze::Table& table, std::vector<Location>& all,
            const analyze::Responsible* responsible)
      : table_(table), all_(all), responsible_(responsible) {}

  // Returns the indices in `all` of the row's frames, innermost first. A truncated stack ends with
  // "...". `frames`: gets, of a folded stack, how many frames each stands for.
  std::vector<size_t> of(const analyze::Row& row, std::vector<size_t>* frames = nullptr);

 private:
  size_t of(const profile::Frame& frame);
  size_t cut(const std::string& text);
  size_t add(Location location);

  const analyze::Table& table_;
  std::vector<Location>& all_;
  const analyze::Responsible* responsible_;
  absl::flat_hash_map<std::string, size_t> known_;
};

struct Stack {
  const analyze::Row* row;
  std::vector<size_t> locations;  // innermost first
  std::vector<size_t> frames;     // that these stand for; those that it lacks for one
  uint64_t value;
};

struct Stacks {
  std::vector<Location> locations;
  std::vector<Stack> stacks;
  uint64_t total = 0;
  size_t left_out = 0;    // stacks whose number has the other sign, also if taken with the value 0
  const char* unit = "";  // "bytes" or "blocks"
  std::string column;     // the name of the number, as in --by
  std::string program;    // the command, or the number of processes
  std::string taken;      // when the last report was taken
};

// Returns whether the order's quantity counts blocks; otherwise it is bytes.
bool counts_blocks(analyze::Order order);

// Which stacks to take: those above 0; those below, by absolute value; or those above 0 and, with
// the value 0, all others that allocated, for formats that also hold how much.
enum class Side { kAbove, kBelow, kAllocated };

// Takes the heap rows of `table`, which must outlive the result, with their values of the order's
// quantity. `responsible`: folds the stacks, which then begin with the responsible frame. Throws
// std::runtime_error when the sum does not fit 64 bits.
Stacks stacks_of(const analyze::Table& table, analyze::Order order, Side side = Side::kAbove,
                 const analyze::Responsible* responsible = nullptr);

// Replaces each character of `text` that is in `bad` by `instead`.
std::string without(std::string text, const char* bad, char instead);

// Addresses in a program with the functions inlined there.

struct Site {
  std::vector<size_t> lines;  // locations, innermost first; all but the last are inlined
  size_t module = 0;          // index in Stacks::table.modules(), or Location::kNoModule
  uint64_t offset = 0;        // as in Location
};

class Sites {
 public:
  explicit Sites(const std::vector<Location>& locations) : locations_(locations) {}

  // Returns the sites of a stack with these locations, as indices in all().
  std::vector<size_t> of(const std::vector<size_t>& stack);
  const std::vector<Site>& all() const { return all_; }

 private:
  size_t add(const std::vector<size_t>& lines);

  const std::vector<Location>& locations_;
  std::vector<Site> all_;
  std::map<std::vector<size_t>, size_t> known_;
};

// The functions that pprof leaves out of its views: allocators and what own code calls to get
// there.

// Returns the drop_frames of a profile.proto: a regular expression (RE2) for whole names. pprof
// removes a frame that matches and all that it calls. So a function is in it only if no stack of
// `table` has own code inside it. Empty: there are none.
std::string dropped_frames(const analyze::Table& table, const analyze::Responsible& responsible);

// A call graph with what was allocated in each function and below it.
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
