// The options of this process, from MTRACE_* variables. The table is format/options.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "format/option_kind.h"

namespace mtrace::hook {

// What an option of each kind becomes: a number, bytes; a signal's number, 0: none; a byte, -1:
// none; a text as given.
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
