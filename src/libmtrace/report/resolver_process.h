// Runs the memlog tool to resolve names after a report (report/launcher.h). One resolver at a time;
// it also gets reports that appear while it runs.
#pragma once

#include <cstdint>

namespace mtrace::report {

// Which reports the resolver also compresses: MTRACE_COMPRESS.
enum class Compressed : uint32_t { kNone, kAll, kLarge };
void set_compressing(Compressed which);

// Whether there is a resolver and it does no more than memlog run does itself.
bool only_names();

// Queues a complete report to have its names resolved. Without a resolver the report is final at
// once. `host_waits`: the resolver then has normal priority. `tree`: also the reports beside it
// that other processes wrote at their end, since this one began, and that have no names. Called by
// one thread at a time, signals blocked.
void resolve_later(const char* path, uint32_t seq, bool host_waits, bool tree);

// Call at the end of the process, after its last report: no resolver starts any more, because
// nothing would end it, and later reports keep no names. A fork's child starts resolvers again.
void stop_resolving();
// Waits at most `seconds` until nothing is queued; then ends the resolver, so that the raw report
// stands. Call at the end of the process and before an exec: afterwards the kernel would notify the
// new program of the supervisor's end.
void finish_resolver(uint64_t seconds);

// In the child of a fork: forgets the parent's resolver and its queue.
void reset_resolver();

}  // namespace mtrace::report
