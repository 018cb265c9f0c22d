// Marks a function of C linkage that the library shows to the program; exports.map lists them.
#pragma once

// Old assembly and compilers of other languages call with a stack that is aligned to 8 bytes only,
// which libc's functions happen to stand.
#define MTRACE_REALIGN [[gnu::force_align_arg_pointer]]
// Without it: for a function that needs no stack itself, and for one that has more to pass on than
// registers hold. There a compiler realigns by copying the return address, and
// MTRACE_CALLER_REGISTERS() would find the copy.
#define MTRACE_EXPORT_AS_IT_IS extern "C" [[gnu::visibility("default")]]
#define MTRACE_EXPORT MTRACE_EXPORT_AS_IT_IS MTRACE_REALIGN
