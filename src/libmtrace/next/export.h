// Marks a function of C linkage that the library exports to the program; exports.map lists them.
#pragma once

#include "base/machine.h"

// Without realignment: for a function that uses no stack itself, and for one whose arguments do not
// fit into registers. To realign the latter, a compiler copies the return address, and
// MTRACE_CALLER_REGISTERS() would find the copy.
#define MTRACE_EXPORT_AS_IT_IS extern "C" [[gnu::visibility("default")]]
#define MTRACE_EXPORT MTRACE_EXPORT_AS_IT_IS MTRACE_REALIGN
