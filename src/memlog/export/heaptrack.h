// heaptrack's data file, version 3, as heaptrack_interpret writes it: for heaptrack_print and
// heaptrack_gui.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/history.h"
#include "export/sites.h"
#include "export/stacks.h"

namespace mtrace::exporting {

// Made of the moments at which it is known what each stack held. Between two of them each stack
// allocates and frees as often as it did, as far as that is told, in blocks of the average size.
// What the moments hold is right to the byte; in between the heap is never made larger than at the
// largest of them so far.
class Heaptrack {
 public:
  // Modules are known from `table`, locations are the stacks' ones; both must live on.
  Heaptrack(const std::string& program, const analyze::Table& table,
            const std::vector<Location>& locations);

  // What the stacks, in this order, hold so many milliseconds after the start; later than the
  // moment before. More stacks than then may follow the known ones. `rss`: bytes, 0: not known.
  void moment(uint64_t milliseconds, const std::vector<Stack>& stacks,
              const std::vector<analyze::Held>& held, uint64_t rss);
  std::string finish() { return std::move(text_); }

 private:
  // Blocks of one size and stack.
  using Info = size_t;
  struct Known {
    size_t trace = 0;
    analyze::Held held;
  };
  // What a stack does from one moment to the next.
  struct Change;

  size_t string(const std::string& text);
  size_t trace(const std::vector<size_t>& locations);
  Info info(size_t trace, uint64_t size, bool other = false);
  void events(char sign, Info info, uint64_t count);
  void spread(char sign, size_t trace, uint64_t count, uint64_t bytes);
  void site(const Site& site);
  Change change(const Known& known, const analyze::Held& now) const;
  void pass(const std::vector<Change>& changes, uint64_t room);

  const analyze::Table& table_;
  const std::vector<Location>& locations_;
  Sites sites_;
  size_t written_ = 0;  // of the sites
  std::string text_;
  absl::flat_hash_map<std::string, size_t> strings_;
  absl::flat_hash_map<std::pair<size_t, size_t>, size_t> traces_;  // site and caller's trace
  absl::flat_hash_map<std::tuple<size_t, uint64_t, bool>, Info> infos_;
  std::vector<Known> known_;
  int64_t highest_ = 0;
};

// Stacks at one moment: what they hold is their number, which must be bytes.
std::string heaptrack(const Stacks& stacks, const analyze::Table& table, uint64_t milliseconds);

}  // namespace mtrace::exporting
