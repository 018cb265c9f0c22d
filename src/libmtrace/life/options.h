// The options of this process, from MTRACE_* variables. The table is format/options.def.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::hook {

struct Options {
  unsigned depth;
  int signal;           // number, 0: none
  const char* output;   // as given
  const char* entries;  // "net", "active" or "all"
  bool start;
  int toggle_signal;  // number, 0: none
  unsigned temporary_ms;
  int fill;         // byte, -1: none
  uint64_t sample;  // bytes, 0: every block
  unsigned mmap;
  bool unknown_stacks;
  uint32_t max_stacks;  // 0: no limit; and so for blocks
  uint32_t max_blocks;
  uint64_t max_memory;  // bytes; 0: no limit
  bool exit_report;
  const char* ledger;  // as given; "": none
  const char* events;  // as given; "": no event log
  bool events_drop;
  bool events_free_stacks;
  unsigned events_cull_ms;
  bool report_on_fatal;
  const char* follow;    // as given
  const char* unwinder;  // "cfi" or "libunwind"
  const char* python;    // "0", "1" or "untried"
  const char* resolver;  // "": look for it
  bool compress;
  unsigned exit_wait;  // seconds
  uint32_t hold_exit;  // process id; 0: none
  unsigned name_after_ms;
  bool command;
};

extern Options g_options;

// Reads the variables from an environment as the kernel laid it down. Texts are kept, not copied:
// the strings of the initial environment stay where they are unless the program overwrites them,
// so what is needed later is copied by those who need it. Bad values are remembered for
// complain().
void read_options(char* const* envp);

// Says on stderr, a line each: bad values, and what is used instead; variables of `envp` that look
// like options and are none. What the parent has said of the same entry is not said again, so that
// a tree of processes says it once.
void complain(char* const* envp);

// "MTRACE_DEPTH=10 MTRACE_ENTRIES=active" and every option that differs from its default, by
// spaces, escaped.
const char* options_line();

// The byte that `text` ("0xa5", "165", "zero") stands for; -1 for "none", -2 when it is none.
int byte_value(const char* text);

// Value of a variable in `envp`, or nullptr.
const char* find_variable(char* const* envp, const char* name);

// Number of the signal called `name` (with or without SIG; a number; RTMIN+n, RTMAX-n); 0 for
// "none", -1 when there is no such signal or it cannot be a trigger.
int signal_number(const char* name);

// Whether `name` matches one of the patterns of * and ? separated by colons.
bool matches_any(const char* patterns, const char* name);

}  // namespace mtrace::hook
