// Which machine this is, to tell whether a memlog was taken here since it was started.
#pragma once

#include <string>

#include "profile/model.h"

namespace mtrace::symbolize {

std::string this_boot_id();  // empty: unknown
std::string this_host();

// The report was taken on this machine, since its last start.
bool taken_here(const profile::Header& header);

}  // namespace mtrace::symbolize
