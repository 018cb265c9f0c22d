// The heap profile of gperftools with symbols, for google-pprof and jeprof.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>

#include "view/export/stacks.h"

namespace mtrace::exporting {

// Returns the text that google-pprof --raw writes: a section with the symbols, then the profile,
// then the modules. "In use" is the stacks' number, which must be bytes, with the blocks if that is
// the change. "Allocated" is from the report, or else equal to "in use". Writes "- -" for "--" in a
// name.
std::string gperftools(const Stacks& stacks, const analyze::Table& table);

// What a server of gperftools answers. The profile alone, with return addresses: google-pprof takes
// one off the address of each caller before it asks for names.
std::string gperftools_profile(const Stacks& stacks, const analyze::Table& table);
// The names at the addresses that google-pprof then asks for.
absl::flat_hash_map<uint64_t, std::string> gperftools_symbols(const Stacks& stacks,
                                                              const analyze::Table& table);

}  // namespace mtrace::exporting
