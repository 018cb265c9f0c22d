// Identifies this machine, to tell whether a memlog was taken here since the last boot.
#pragma once

#include <string>

#include "profile/model.h"

namespace mtrace::symbolize {

std::string this_boot_id();  // empty: unknown
std::string this_host();

// Returns whether the report was taken on this machine since its last boot.
bool taken_here(const profile::Header& header);

}  // namespace mtrace::symbolize
