// Whether a program that exec is about to start can take this library from LD_PRELOAD. A loader
// that is neither glibc's nor musl's may end the program because of it; the loader of another word
// size complains on stderr.
//
// Async-signal-safe, also in a child of vfork; leaves errno alone.
#pragma once

#include <cstddef>

namespace mtrace::life {

// False: the program at `path`, or the interpreter of the script at `path`, has an unknown
// loader or another word size. True also for files that cannot be read, for static programs, whose
// children may be dynamic, and once the program may have a filter of system calls.
bool takes_library(const char* path);
bool takes_library(int fd);
bool takes_library_at(int fd, const char* path, int flags);  // as execveat has them
// takes_library() of a file that execvp or posix_spawnp looks up in PATH.
bool found_takes_library(const char* file);

// False: a program started from here could not open the library, and its loader would say so on
// stderr, because this process has another root, mount namespace or user.
bool sees_library();

// Bytes that without_library() needs; 0: `envp` has no LD_PRELOAD, or is too large for it.
size_t room_without_library(char* const envp[]);
// `envp` without this library in LD_PRELOAD, in `room`: other libraries stay, an empty list goes.
char** without_library(char* const envp[], void* room);

}  // namespace mtrace::life
