// The classes of objects in another process, as their virtual tables tell (Itanium C++ ABI, 2.5 and
// 2.9.5). Type information is in every program, also in a stripped one.
#pragma once

#include <sys/types.h>

#include "model/symbols/module_symbols.h"
#include "process/inspect/mappings.h"
#include "process/inspect/memory_view.h"
#include "util/prelude.h"

namespace mtrace::process {

class ObjectClasses {
 public:
  // The process may run meanwhile. `where`: of separate symbols. Throws std::runtime_error when its
  // memory cannot be read.
  ObjectClasses(pid_t pid, symbols::SearchPath where);

  // Returns the class of the object that is the block, demangled; empty: none begins there that has
  // a virtual table. Costs least for rising addresses. Valid until the next call.
  const std::string& at(uint64_t address, uint64_t size);

 private:
  uint64_t word(uint64_t address);
  const Mapping* in_file(uint64_t address) const;
  std::string find(uint64_t table);
  std::string find_symbol(uint64_t table);
  std::string type_name(uint64_t information) const;

  pid_t pid_;
  symbols::SearchPath where_;
  PageMap pages_;
  std::vector<Mapping> map_;
  std::vector<uint64_t> window_;  // words of memory; zero: nothing is there
  uint64_t window_begin_ = 0;
  absl::flat_hash_map<uint64_t, std::string> known_;  // by table
  const std::string none_;
  int lookups_ = 0;  // of symbols
};

}  // namespace mtrace::process
