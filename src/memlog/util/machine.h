// What memlog needs to know of the processor: it holds the processes, and reads the core files, of
// its own. Each processor has a file of that name in a folder of its own, with the same names.
//
//   kElfMachine          in ELF files
//   kLibraries           below a prefix, as Debian has it
//   kVectorSet           the register set with vector registers, in ptrace(2) and in core files
//   kThreadPointerSet    the one with the thread pointer; 0: none, thread_pointer() has it
//   program_counter(), stack_pointer()
//                        of a thread's registers
//   kDtv                 offset from the thread pointer of the pointer to the vector of
//                        thread-local storage
//   kBlockNamesItself    whether the first and third word of glibc's thread control block are its
//                        own address
//   tls_storage()        where a thread has the variables of the program's own file. `first`: what
//                        the address of the PT_TLS segment lacks to a multiple of `align`
//   counter()            the processor's counter, where libmtrace.so uses that for time stamps
#pragma once

#include <sys/user.h>

#if defined(__x86_64__)
#include "util/x86_64/machine.h"
#elif defined(__aarch64__)
#include "util/aarch64/machine.h"
#else
#error "memlog is written for x86_64 and aarch64"
#endif
