// The options of this process, from MTRACE_* variables. The table is format/options.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/writer.h"
#include "format/option_kind.h"

namespace mtrace::life {

// Type of an option by kind: a number (UINT64_MAX: the word for which it has no number) or bytes; a
// signal's number, 0: none; a byte, -1: none; text as given.
template <format::OptionKind kKind>
using OptionValue = std::conditional_t<
    kKind == format::OptionKind::kNumber || kKind == format::OptionKind::kBytes, uint64_t,
    std::conditional_t<kKind == format::OptionKind::kSignal || kKind == format::OptionKind::kByte,
                       int, const char*>>;

// A member for each line of the table.
struct Options {
#define MTRACE_OPTION(member, variable, kind, ...) OptionValue<format::OptionKind::kind> member;
#include "format/options.def"
#undef MTRACE_OPTION
};

extern Options g_options;

// Reads the variables from the environment that the kernel set up. Keeps the texts without a copy:
// they stay where they are unless the program overwrites them, so whoever needs a text later copies
// it. Keeps bad values for complain().
void read_options(char* const* envp);

// Writes a line to stderr for each bad value, with the value used instead, and for each variable of
// `envp` that looks like an option and is none. Omits what the parent has written about the same
// entry, so that a tree of processes writes each line once.
void complain(char* const* envp);

// Writes " MTRACE_DEPTH=10 MTRACE_ENTRIES=active" and every option that differs from its default,
// escaped, each after a space.
void write_options(Writer& out);

// When to write a report by itself (MTRACE_REPORT_AT).
struct ReportMoment {
  enum class Kind : uint8_t { kNone, kPeak, kGrowth, kResident };
  Kind kind;
  uint8_t percent;  // kResident: of the limit; 0: at `bytes`
  bool valid;
  uint64_t bytes;
};

// The moment that `text` means.
ReportMoment moment_of(const char* text);

// The byte that `text` ("0xa5", "165", "zero") means; -1 for "none", -2 when it is no byte.
int byte_value(const char* text);

// Value of a variable in `envp`, or nullptr.
const char* find_variable(char* const* envp, const char* name);

// Number of the signal called `name` (with or without SIG; a number; RTMIN+n, RTMAX-n); 0 for
// "none", -1 when there is no such signal or it cannot be a trigger.
int signal_number(const char* name);

// Whether `name` matches one of the patterns of * and ? separated by colons.
bool matches_any(const char* patterns, const char* name);

}  // namespace mtrace::life
