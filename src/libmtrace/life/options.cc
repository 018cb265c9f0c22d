#include "life/options.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <type_traits>

#include "base/file.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "format/escape.h"
#include "format/ledger.h"
#include "format/option_kind.h"
#include "life/environment.h"

namespace mtrace::life {

constinit Options g_options = {};

namespace {

using format::OptionKind;

struct Entry {
  const char* variable;
  OptionKind kind;
  const char* standard;
  long minimum;
  long maximum;
  const char* values;
};

constexpr Entry kTable[] = {
#define MTRACE_OPTION(member, variable, kind, standard, minimum, maximum, values, help) \
  {variable, OptionKind::kind, standard, minimum, maximum, values},
#include "format/options.def"
#undef MTRACE_OPTION
};
enum Index {
#define MTRACE_OPTION(member, ...) k_##member,
#include "format/options.def"
#undef MTRACE_OPTION
  kCount,
};

const char* g_value[kCount];  // in force
const char* g_bad[kCount];    // as given, if not usable

constexpr struct {
  char name[8];
  int number;
} kSignals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},       {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2}, {"ALRM", SIGALRM},     {"TERM", SIGTERM}, {"PIPE", SIGPIPE},
    {"URG", SIGURG},   {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH},
    {"IO", SIGIO},     {"POLL", SIGPOLL},     {"PWR", SIGPWR},   {"STKFLT", SIGSTKFLT},
    {"XCPU", SIGXCPU}, {"TSTP", SIGTSTP},     {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU},
    {"CONT", SIGCONT},
};

// Decimal digits only. -1: not a number, or too large for an option.
long parse_number(const char* text) {
  long value = 0;
  if (*text == '\0') return -1;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || value > 1'000'000'000) return -1;
    value = value * 10 + (*text - '0');
  }
  return value;
}

// A number, or one followed by K, M or G for powers of 1024. -1: neither.
long parse_bytes(const char* text) {
  constexpr char kUnits[] = "KMG";
  char digits[12];
  const size_t length = strlen(text);
  const char* unit = length > 1 ? strchr(kUnits, text[length - 1]) : nullptr;
  if (unit == nullptr) return parse_number(text);
  if (length > sizeof digits) return -1;
  memcpy(digits, text, length - 1);
  digits[length - 1] = '\0';
  const long value = parse_number(digits);
  return value < 0 ? -1 : value << (unit - kUnits + 1) * 10;
}

bool is_choice(const char* values, const char* text) {
  const size_t length = strlen(text);
  for (const char* p = values; *p != '\0';) {
    const size_t word = strcspn(p, "|");
    if (word == length && memcmp(p, text, length) == 0) return true;
    p += word + (p[word] == '|');
  }
  return false;
}

bool is_valid(const Entry& entry, const char* text) {
  switch (entry.kind) {
    case OptionKind::kNumber: {
      const long value = parse_number(text);
      return (value >= entry.minimum && value <= entry.maximum) ||
             (value < 0 && entry.values[0] != '\0' && strcmp(text, entry.values) == 0);
    }
    case OptionKind::kBytes: {
      const long value = parse_bytes(text);
      return value >= entry.minimum && value <= entry.maximum;
    }
    case OptionKind::kChoice:
      return is_choice(entry.values, text);
    case OptionKind::kPatterns:
      return text[0] != '\0';
    case OptionKind::kSignal:
      return signal_number(text) >= 0;
    case OptionKind::kByte:
      return byte_value(text) >= -1;
    case OptionKind::kMoment:
      return moment_of(text).valid;
    case OptionKind::kText:
      break;
  }
  return true;
}

bool matches(const char* pattern, size_t length, const char* name) {
  // Iterative glob: on a mismatch the last star takes one byte more.
  size_t p = 0;
  size_t star = length;
  const char* retry = name;
  while (*name != '\0') {
    if (p < length && pattern[p] == '*') {
      star = p++;
      retry = name;
    } else if (p < length && (pattern[p] == '?' || pattern[p] == *name)) {
      ++p;
      ++name;
    } else if (star < length) {
      p = star + 1;
      name = ++retry;
    } else {
      return false;
    }
  }
  while (p < length && pattern[p] == '*') ++p;
  return p == length;
}

// Why `text` cannot be used.
void describe(Writer& out, const Entry& entry, const char* text) {
  switch (entry.kind) {
    case OptionKind::kNumber:
      out.text(" is not a number from ").number(entry.minimum).text(" to ").number(entry.maximum);
      if (entry.values[0] != '\0') out.text(" or ").text(entry.values);
      break;
    case OptionKind::kBytes:
      if (is_valid(entry, text)) {
        out.text(" is not for a process with an event log (MTRACE_EVENTS), which has every block");
        break;
      }
      out.text(" is not a number of bytes from ").number(entry.minimum).text(" to ");
      out.number(entry.maximum).text(", with or without K, M or G");
      break;
    case OptionKind::kChoice:
      out.text(" is not one of ").text(entry.values);
      break;
    case OptionKind::kSignal:
      out.text(signal_number(text) < 0 ? " is not a signal that can be caught"
                                       : " is the signal that writes reports");
      break;
    case OptionKind::kByte:
      out.text(" is not none, zero or a number from 0 to 255");
      break;
    case OptionKind::kMoment:
      out.text(" is not none, peak, +BYTES, rss:BYTES or rss:N% (1 to 99), BYTES with K, M or G");
      break;
    case OptionKind::kPatterns:
    case OptionKind::kText:
      out.text(" is empty");
      break;
  }
}

}  // namespace

const char* find_variable(char* const* envp, const char* name) {
  const size_t length = strlen(name);
  for (; envp != nullptr && *envp != nullptr; ++envp) {
    if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') return *envp + length + 1;
  }
  return nullptr;
}

int signal_number(const char* name) {
  if (strcmp(name, "none") == 0) return 0;
  if (strncmp(name, "SIG", 3) == 0) name += 3;
  long number = parse_number(name);
  if (number < 0 && strncmp(name, "RTMIN", 5) == 0) {
    const long offset = name[5] == '\0' ? 0 : name[5] == '+' ? parse_number(name + 6) : -1;
    number = offset < 0 ? -1 : SIGRTMIN + offset;
  } else if (number < 0 && strncmp(name, "RTMAX", 5) == 0) {
    const long offset = name[5] == '\0' ? 0 : name[5] == '-' ? parse_number(name + 6) : -1;
    number = offset < 0 ? -1 : SIGRTMAX - offset;
  }
  if (number >= SIGRTMIN && number <= SIGRTMAX) return static_cast<int>(number);
  for (const auto& known : kSignals) {
    if (known.number == number || strcmp(known.name, name) == 0) return known.number;
  }
  return -1;  // unknown, or one that must not be caught: KILL, STOP, CHLD, faults
}

ReportMoment moment_of(const char* text) {
  using Kind = ReportMoment::Kind;
  if (strcmp(text, "none") == 0) return {Kind::kNone, 0, true, 0};
  if (strcmp(text, "peak") == 0) return {Kind::kPeak, 0, true, 0};
  const bool grows = text[0] == '+';
  if (!grows && strncmp(text, "rss:", 4) != 0) return {};
  text += grows ? 1 : 4;
  const size_t length = strlen(text);
  if (!grows && (length == 2 || length == 3) && text[length - 1] == '%') {
    const char digits[] = {text[0], length == 3 ? text[1] : '\0', '\0'};
    const long percent = parse_number(digits);
    return {Kind::kResident, static_cast<uint8_t>(percent), percent > 0, 0};
  }
  const long bytes = parse_bytes(text);
  return {grows ? Kind::kGrowth : Kind::kResident, 0, bytes > 0, static_cast<uint64_t>(bytes)};
}

int byte_value(const char* text) {
  if (strcmp(text, "none") == 0) return -1;
  if (strcmp(text, "zero") == 0) return 0;
  if (text[0] != '0' || text[1] != 'x') {
    const long number = parse_number(text);
    return number >= 0 && number <= 255 ? static_cast<int>(number) : -2;
  }
  int value = 0;
  for (const char* p = text + 2; *p != '\0' || p == text + 2; ++p) {
    const int digit = *p >= '0' && *p <= '9'   ? *p - '0'
                      : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
                      : *p >= 'A' && *p <= 'F' ? *p - 'A' + 10
                                               : 256;
    value = value * 16 + digit;
    if (value > 255) return -2;
  }
  return value;
}

bool matches_any(const char* patterns, const char* name) {
  for (const char* p = patterns;;) {
    const size_t length = strcspn(p, ":");
    if (length != 0 && matches(p, length, name)) return true;
    if (p[length] == '\0') return false;
    p += length + 1;
  }
}

template <OptionKind kKind>
static OptionValue<kKind> value_of(const char* text) {
  if constexpr (kKind == OptionKind::kNumber) return static_cast<uint64_t>(parse_number(text));
  if constexpr (kKind == OptionKind::kBytes) return static_cast<uint64_t>(parse_bytes(text));
  if constexpr (kKind == OptionKind::kSignal) return signal_number(text);
  if constexpr (kKind == OptionKind::kByte) return byte_value(text);
  if constexpr (std::is_pointer_v<OptionValue<kKind>>) return text;
}

// Copies the options of the environment, as "NAME=value", since the program may overwrite it
// (setproctitle). given[i] then points to the copy's value. Without memory it stays as it is.
static void keep_given(const char* (&given)[kCount]) {
  const auto entry_of = [&](int i) { return given[i] - strlen(kTable[i].variable) - 1; };
  size_t bytes = 0;
  for (int i = 0; i < kCount; ++i) bytes += given[i] == nullptr ? 0 : strlen(entry_of(i)) + 1;
  auto* at = bytes == 0 ? nullptr : static_cast<char*>(base::map_memory(bytes));
  if (at == nullptr) return;
  for (int i = 0; i < kCount; ++i) {
    if (given[i] == nullptr) continue;
    const char* const entry = entry_of(i);
    const size_t size = strlen(entry) + 1;
    memcpy(at, entry, size);
    given[i] = at + (given[i] - entry);
    at += size;
  }
}

void read_options(char* const* envp) {
  const char* all[kCount];
  for (int i = 0; i < kCount; ++i) all[i] = find_variable(envp, kTable[i].variable);
  keep_given(all);
  for (int i = 0; i < kCount; ++i) {
    const char* const given = all[i];
    const bool usable = given != nullptr && is_valid(kTable[i], given);
    g_value[i] = usable ? given : kTable[i].standard;
    g_bad[i] = given != nullptr && !usable ? given : nullptr;
  }
  const auto refuse_if = [](bool bad, int option) {
    if (!bad) return;
    g_bad[option] = g_value[option];
    g_value[option] = kTable[option].standard;
  };
  // One signal cannot be both triggers.
  const int toggle = signal_number(g_value[k_toggle_signal]);
  refuse_if(toggle != 0 && toggle == signal_number(g_value[k_signal]), k_toggle_signal);
  // An event log has every block, so it excludes samples; its writer reads a ledger.
  const bool logs = g_value[k_events][0] != '\0';
  refuse_if(logs && parse_bytes(g_value[k_sample]) != 0, k_sample);
  refuse_if(logs && parse_bytes(g_value[k_max_memory]) != 0, k_max_memory);
#define MTRACE_OPTION(member, variable, kind, ...) \
  g_options.member = value_of<OptionKind::kind>(g_value[k_##member]);
#include "format/options.def"
#undef MTRACE_OPTION
  if (logs && g_options.ledger[0] == '\0') g_options.ledger = format::kLedgerPlace;
}

namespace {

void complain_of_value(const Entry& entry, const char* bad) {
  // The entry "NAME=value" begins before its value.
  if (parent_has_complained(bad - strlen(entry.variable) - 1)) return;
  char line[1280];  // the value, escaped, is at most 800 bytes of it
  Writer out(line, sizeof line, STDERR_FILENO);
  out.text("mtrace: ").text(entry.variable).put('=');
  out.escaped(bad, strnlen(bad, 200), format::kReservedNone);
  describe(out, entry, bad);
  out.text("; using ").text(entry.standard).put('\n').finish();
}

// Whether a name of `length` bytes has the prefix of an option, and is no option.
bool is_unknown_option(const char* name, size_t length) {
  constexpr char kPrefix[] = "MTRACE_";
  constexpr size_t kPrefixLength = sizeof kPrefix - 1;
  if (length <= kPrefixLength || memcmp(name, kPrefix, kPrefixLength) != 0) return false;
  for (const Entry& entry : kTable) {
    if (strlen(entry.variable) == length && memcmp(entry.variable, name, length) == 0) return false;
  }
  return true;
}

void complain_of_name(const char* entry, size_t length) {
  if (parent_has_complained(entry)) return;
  char line[512];
  Writer out(line, sizeof line, STDERR_FILENO);
  out.text("mtrace: ").escaped(entry, length < 100 ? length : 100, format::kReservedNone);
  out.text(" is not an option (memlog help options)\n").finish();
}

}  // namespace

void complain(char* const* envp) {
  for (int i = 0; i < kCount; ++i) {
    if (g_bad[i] != nullptr) complain_of_value(kTable[i], g_bad[i]);
  }
  for (; envp != nullptr && *envp != nullptr; ++envp) {
    const size_t length = strcspn(*envp, "=");
    if (is_unknown_option(*envp, length)) complain_of_name(*envp, length);
  }
}

void write_options(Writer& out) {
  for (int i = 0; i < kCount; ++i) {
    // What a report holds depends on these two.
    const bool always = i == k_depth || i == k_entries;
    if (!always && strcmp(g_value[i], kTable[i].standard) == 0) continue;
    out.put(' ').text(kTable[i].variable).put('=');
    out.escaped(g_value[i], " ");
  }
}

}  // namespace mtrace::life
