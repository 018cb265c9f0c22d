// Where functions are, by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbolize/module_symbols.h"

namespace mtrace::symbolize {

// For each of `names`, which are mangled, the ELF addresses of the functions of that name in the
// module at `path`, the likeliest first. Done in a process of its own; empty where nothing is
// known.
std::vector<std::vector<uint64_t>> symbol_addresses(const SearchPath& where,
                                                    const std::string& path,
                                                    const std::string& build_id,
                                                    const std::vector<std::string>& names);

}  // namespace mtrace::symbolize
