// Stacks with one number each: what profiles of other tools are made of.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/row.h"
#include "analyze/table.h"

namespace mtrace::exporting {

// A place in the program. Texts are escaped as a memlog escapes them, so they are UTF-8 without
// control bytes.
struct Location {
  std::string function;  // never empty: module+0xoffset where it is not known
  std::string file;      // empty: unknown
  uint64_t line = 0;
  size_t module = 0;    // of Stacks::table.modules(), kNoModule: none
  uint64_t offset = 0;  // ELF address in the module, or address; 0: inlined

  static constexpr size_t kNoModule = SIZE_MAX;
  bool operator==(const Location&) const = default;
};

// The places that stacks consist of, each once.
class Locations {
 public:
  // Modules are known from `table`; the locations go to `all`. Both must live on.
  Locations(const analyze::Table& table, std::vector<Location>& all) : table_(table), all_(all) {}

  // Indices in `all` of the row's frames, innermost first; a stack that was cut ends in "...".
  std::vector<size_t> of(const analyze::Row& row);

 private:
  size_t of(const profile::Frame& frame);
  size_t cut();
  size_t add(Location location);

  const analyze::Table& table_;
  std::vector<Location>& all_;
  absl::flat_hash_map<std::string, size_t> known_;
};

struct Stack {
  const analyze::Row* row;
  std::vector<size_t> locations;  // innermost first
  uint64_t value;
};

struct Stacks {
  std::vector<Location> locations;
  std::vector<Stack> stacks;
  uint64_t total = 0;
  size_t left_out = 0;    // stacks whose number is on the other side of 0
  const char* unit = "";  // "bytes" or "blocks"
  std::string column;     // what the number is, as --by has it
  std::string program;    // the command, or how many processes
  std::string taken;      // when the last report was taken
};

// Whether the order's quantity is a number of blocks; else it is bytes.
bool counts_blocks(analyze::Order order);

// Which stacks: those whose number is above 0, or those below, with by how much.
enum class Side { kAbove, kBelow };

// The heap rows of `table`, which must live on, with what they have of the order's quantity. Throws
// std::runtime_error when the sum does not fit 64 bits.
Stacks stacks_of(const analyze::Table& table, analyze::Order order, Side side = Side::kAbove);

// `text` without the characters in `bad`, for each of which it has `instead`.
std::string without(std::string text, const char* bad, char instead);

}  // namespace mtrace::exporting
