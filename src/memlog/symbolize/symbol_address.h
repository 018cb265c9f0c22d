// Finds functions by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbolize/module_symbols.h"

namespace mtrace::symbolize {

// For each of the mangled `names`, returns the ELF addresses of the functions with that name in the
// module at `path`, the likeliest first; empty: nothing known. Works in a child process.
std::vector<std::vector<uint64_t>> symbol_addresses(const SearchPath& where,
                                                    const std::string& path,
                                                    const std::string& build_id,
                                                    const std::vector<std::string>& names);

}  // namespace mtrace::symbolize
