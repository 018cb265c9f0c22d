// The program's arguments and environment, and the two changes to the environment that children
// need. Each replaces one pointer in the array that the kernel set up, so that envp of main and
// environ both show the change.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::life {

struct Arguments {
  char** argv;
  char** envp;
};
// Returns the arrays that the kernel set up. Works before libc has set environ.
Arguments initial_arguments();
// For a running program, which may have changed both: the arguments as the kernel shows them, and
// in place of the environment `options`, each ended by a zero byte, the last by two. Copies both;
// omits what finds no room.
Arguments late_arguments(const char* options);

// Makes the token of LD_PRELOAD that names this library absolute, so that children in other
// directories find it, and marks this process as the only one that MTRACE_FOLLOW=0 traces.
void rewrite_environment(char** envp, const char* own_path, uint32_t pid);

// How the entry of LD_PRELOAD in an environment begins.
inline constexpr char kPreload[] = "LD_PRELOAD=";
// Whether a token of LD_PRELOAD names this library: compares the last component, because the loader
// found this library by it.
bool is_own_token(const char* token, size_t length, const char* own_path);

// Whether `follow` (0 or 0:PID) names the process `pid`.
bool is_follow_root(const char* follow, uint32_t pid);

// ---- Where this library lies, and the memlog tool that belongs to it.

// Finds the library's path and code. After report::learn_host().
void learn_own_path();
// The library's path, absolute; "" when unknown.
const char* own_path();

// Path of memlog, which fills in names; nullptr: none. MTRACE_RESOLVER, or else the first
// executable of: beside the library, ../bin and ../../bin from there. Never looked up in PATH or in
// the working directory.
const char* find_tool();

// ---- This process's parent and children, as read from /proc. Async-signal-safe.

// Fields of /proc/self/stat (proc(5)).
struct Relatives {
  uint64_t parent = 0;           // 0: in another namespace, or not known
  uint64_t children_faults = 0;  // minor page faults of the children that were waited for
};
Relatives relatives();

// Whether the library is mapped into the process, and the memlog program is not: memlog may have
// the library and does not count.
bool is_traced(uint64_t pid);

// Whether this process's parent is traced and was started with the same entry of the environment
// ("NAME=value"; nullptr: any), so that it has written what is wrong with the entry. False also
// when that is not known.
bool parent_has_complained(const char* entry);

// ---- Whether a program that exec is about to start can take this library from LD_PRELOAD. A
// loader that is neither glibc's nor musl's may end the program because of it; the loader of
// another word size complains on stderr.
//
// Async-signal-safe, also in a child of vfork; leaves errno alone.

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
