// All stacks of the sources with their names, by id. Read when a query first asks for one.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/event_log.h"
#include "model/symbols/symbolizer.h"
#include "surface/sql/sources.h"
#include "view/analyze/responsible.h"
#include "view/analyze/table.h"

namespace mtrace::sql {

struct NameOptions {
  symbols::SearchPath where;
  bool resolve = true;  // look up names that the reports lack
  analyze::ResponsiblePointer responsible;
};

// Returns the id of a stack as 16 hex digits, as in a memlog.
std::string stack_text(uint64_t id);

class StackBook {
 public:
  StackBook(Sources& sources, NameOptions options);

  // Adds the stacks of a report that are new, and looks up their names once one of them is asked
  // for: to open a module costs more than to look up a thousand addresses in it.
  void learn(const profile::Memlog& memlog);
  // Does so with the stacks of an event log that it has met behind the first `known`, if `stack` is
  // one of those; then `known` is their number.
  void learn(const events::EventLog& log, uint32_t stack, uint32_t& known);

  // Returns the stacks of all sources, a row without numbers each, in the order in which they were
  // met. Throws what reading the sources throws.
  const std::vector<analyze::Row>& stacks();
  // Returns the position of a stack in stacks(). Reads all sources if the stack was not met yet.
  std::optional<size_t> find(uint64_t id);
  // Like find(), by the text of an id; nothing for a text that is none.
  std::optional<size_t> find(std::string_view id);

  const analyze::Row& stack(size_t at) const { return table_.rows()[at]; }
  const std::vector<profile::Module>& modules() const { return table_.modules(); }

  // Returns the functions, innermost first: "f < g < main".
  std::string text(size_t at) const;
  // Returns the position of the frame that is responsible for a stack; nothing: it has no frames,
  // or was cut before own code.
  std::optional<size_t> own(size_t at) const;
  // Returns the function of a frame, or the module and offset if it is unknown.
  std::string function(size_t at, size_t frame) const;
  const analyze::Responsible& responsible() const { return *options_.responsible; }

 private:
  void read_reports();
  void read();
  void name_pending();

  Sources& sources_;
  NameOptions options_;
  symbols::Symbolizer symbolizer_;
  bool reports_read_ = false;
  bool read_ = false;                            // all sources
  std::vector<profile::Memlog> pending_;         // stacks whose names were not looked up
  analyze::Table table_;                         // the others
  absl::flat_hash_map<uint64_t, size_t> by_id_;  // of both, by when they were met
};

}  // namespace mtrace::sql
