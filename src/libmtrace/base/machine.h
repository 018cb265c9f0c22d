// What the library needs of the processor and of its ABI. Each processor has a file of that name in
// a folder of its own, with the same names; nothing else of the base asks which one it is.
//
//   kElfMachine, kName           in ELF files; in reports, as uname(1) has it
//   kUserBits                    user addresses are below 1 << kUserBits
//   page_bytes(), kMostPage      the kernel's pages; the largest that a kernel may have
//   kLibcsActionFlags            that libc adds to every action of a signal
//   kSlotRelocation, kDataRelocation, kWordRelocation
//                                a symbol's address in the PLT's table, in the GOT, in data
//   has_invariant_counter(), counter()
//                                whether there is a counter so fast that two events that follow one
//                                another never see the same number; the counter
//   kRelaxedLoad, kRelaxedStore, kRelaxedExchange
//                                memory orders that give what x86_64 gives a plain access: loads
//                                stay in order, and so do stores
//   system_call()                as the kernel's ABI has it; negative errno
//   clone_onto()                 clone(2); the child pops a function and its argument from its
//                                stack, and exits with the result
//   call_onto()                  calls a function on another stack
//   thread_control_block()       the upper end of a thread's stack, but the main thread's
//   divide()                     high * 2^64 / divisor, where that fits: high < divisor. (The
//                                compiler would call its run-time library, which the host has not.)
//   copy_long(), fill_long()     memcpy and memset for more than 128 bytes
//   bits_of()                    the highest bit of each of Bytes
//   ask_valgrind()               a client request (valgrind's manual); 0 without valgrind
//   kThreadAlign         the largest alignment that glibc gives thread-local variables of a library
//                        that is loaded later, with room from the beginning (TCB_ALIGNMENT)
//   MTRACE_REALIGN               for functions whose caller may have left the stack unaligned
#pragma once

namespace mtrace::machine {
// 16 at once.
typedef signed char Bytes __attribute__((vector_size(16), may_alias));
typedef signed char UnalignedBytes __attribute__((vector_size(16), may_alias, aligned(1)));
}  // namespace mtrace::machine

#if defined(__x86_64__)
#include "base/x86_64/machine.h"
#elif defined(__aarch64__)
#include "base/aarch64/machine.h"
#else
#error "libmtrace.so is written for x86_64 and aarch64"
#endif

// Marks a function of C linkage that the library exports to the program; exports.map lists them.
//
// Without realignment: for a function that uses no stack itself, and for one whose arguments do not
// fit into registers. To realign the latter, a compiler copies the return address, and
// MTRACE_CALLER_REGISTERS() would find the copy.
#define MTRACE_EXPORT_AS_IT_IS extern "C" [[gnu::visibility("default")]]
#define MTRACE_EXPORT MTRACE_EXPORT_AS_IT_IS MTRACE_REALIGN
