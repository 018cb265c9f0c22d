// Has the memlog tool fill in names after a report, outside the host and unseen by it. One
// resolver at a time; it also gets reports that appear while it runs.
#pragma once

#include <cstdint>

namespace mtrace::report {

// At start. `tool`: path of memlog, or nullptr for none. The environment of the resolver is a copy
// of `envp` without LD_*. `signal`: the trigger, which the resolver ignores.
void set_resolver(const char* tool, char* const* envp, int signal);
// Whether the resolver also compresses reports.
void set_compressing(bool on);

// Whether all that the resolver does is to fill in names.
bool only_names();

// What set_resolver() has made of it, for another run of the tool. No path: there is none, or it
// must not be started any more, because the program has restricted its system calls since, and to
// start a process could be its end, or has another root, in which another file has that name.
struct Tool {
  const char* path;  // nullptr: none
  char* const* envp;
  int ignored_signal;
};
Tool resolver_tool();

// Queues a complete report for naming. Without a resolver it is final at once. `host_waits`: that
// is no work in the background. `tree`: then also the reports beside it that were written at the
// end of other processes since this one began, and have no names. Called by one thread at a time,
// signals blocked.
void resolve_later(const char* path, uint32_t seq, bool host_waits, bool tree);

// For the end of the process, after its last report: later ones stay as they are. Nobody would end
// a resolver that is started now. In the child of a fork it is as before.
void stop_resolving();
// Waits until nothing is queued, at most `seconds`; then ends the resolver, so that the raw report
// stands. For the end of the process, or of the program in it: after an exec the kernel would tell
// the new program of the supervisor's end.
void finish_resolver(uint64_t seconds);

// In the child of a fork: what the parent's resolver does is no concern of ours.
void reset_resolver();

}  // namespace mtrace::report
