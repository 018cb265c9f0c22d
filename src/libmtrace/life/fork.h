// What this process counts, and how a fork's child is told and set up.
#pragma once

#include <cstdint>

namespace mtrace::hook {

// At the start. False: no memory.
bool make_tables();
// When memlog attaches again: if the options ask for a ledger in a file and there is none, makes
// new tables in a file. The old ones are not freed. No other thread may be inside the library; each
// keeps its slot. False: no memory.
bool move_tables();
// To what the options say, which make_tables() does, too.
void limit_tables();
// Then. `recording`: whether it begins with that.
void begin_counting(bool recording);
// From now on nothing is counted, and the program runs on.
void go_quiet(const char* why);
// Where libc's fork is told of: after these.
void watch_forks();

// In the thread that forks, and then in the child before anything else: libc's _Fork tells nobody.
void prepare_fork();
void leave_parents_tables();

// Whether this process has called fork; not vfork or posix_spawn.
bool has_forked();

// True in a process that counts and whose tables these are; not yet in a fork's child.
bool is_set_up();
// The child of a fork that nothing here has happened in yet.
bool is_unsettled();
// Whether it was recording before.
bool settle(bool recording);
bool settled_to_record();

// Tells readers of the ledger what is known now.
void show_ledger();

}  // namespace mtrace::hook
