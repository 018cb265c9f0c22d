// Marks a function of C linkage that the library shows to the program; exports.map lists them.
#pragma once

#define MTRACE_EXPORT extern "C" __attribute__((visibility("default")))
