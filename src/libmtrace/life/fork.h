// Turns the counting of this process on and off, and sets up the child of a fork.
#pragma once

#include <cstdint>

namespace mtrace::life {

// Makes the tables, at the start. False: no memory.
bool make_tables();
// When memlog attaches again: if the options ask for a ledger in a file and there is none, makes
// new tables in a file. The old ones are not freed. No other thread may be inside the library; each
// keeps its slot. False: no memory.
bool move_tables();
// Applies the limits of the options to the tables. make_tables() calls it.
void limit_tables();
// Starts counting, after make_tables(). `recording`: whether new blocks are recorded at first.
void begin_counting(bool recording);
// Stops counting, because of `why`; the program runs on.
void go_quiet(const char* why);
// Registers the handlers of libc's fork, after the calls above.
void watch_forks();

// Before a fork, in that thread; then in the child, first of all. libc's _Fork runs no handlers.
void prepare_fork();
void leave_parents_tables();

// Whether this process has called fork; not vfork or posix_spawn.
bool has_forked();

// True: this process counts, in tables of its own. Sets up a fork's child first.
bool is_set_up();
// True in a fork's child that is not set up yet.
bool is_new_child();
// Starts or stops the recording of new blocks. Returns whether it was on.
bool switch_recording(bool recording);
bool is_recording_on();
// MTRACE_MAX_MEMORY: watches how far the tables grow. Beyond the limit new blocks are lost.
void limit_memory();

// Publishes the ledger, with what is known now, to readers in other processes.
void show_ledger(bool recording);

// ---- What the modules of this library that keep something of the process forget, and when.

enum class Reset : unsigned {
  kFork = 1,     // the child of a fork, with one thread; its tables may be its parent's
  kSession = 2,  // attached again: nothing of the last time counts. No thread is inside the library
  kTables = 4,   // the tables are new ones. As kFork or kSession
};
// By a thread that is alone in the library.
void reset(Reset why);

}  // namespace mtrace::life
