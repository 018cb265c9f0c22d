#include "report/host.h"

#include <sys/auxv.h>

#include <cstring>

#include "base/process.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "format/escape.h"
#include "format/ledger.h"

namespace mtrace::report {

constinit Host g_host = {};

namespace {

constexpr size_t kCommandLimit = 64 * 1024;
constexpr char kCutCommand[] = " ...";

char* copy_command(char* const* argv) {
  auto* memory = g_host.command;
  if (memory == nullptr) memory = static_cast<char*>(base::map_memory(kCommandLimit));
  if (memory == nullptr) return nullptr;
  Writer out(memory, kCommandLimit - sizeof kCutCommand);
  for (int i = 0; argv[i] != nullptr; ++i) {
    if (i > 0) out.put(' ');
    if (argv[i][0] == '\0') out.text("''");
    out.escaped(argv[i], format::kReservedArgument);
  }
  if (out.finish() == 0) return memory;
  // Whole arguments are left out: an escape must not be cut.
  char* const end = strrchr(memory, ' ');
  strcpy(end == nullptr ? memory : end, kCutCommand);
  return memory;
}

}  // namespace

const char* last_component(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr && slash[1] != '\0' ? slash + 1 : path;
}

uint64_t number_at(const char* text) {
  while (*text == ' ' || *text == '\t') ++text;
  uint64_t value = 0;
  while (*text >= '0' && *text <= '9') value = value * 10 + static_cast<uint64_t>(*text++ - '0');
  return value;
}

void learn_host(char* const* argv, bool keep_command) {
  Host& host = g_host;
  format::LedgerHeader& header = *base::g_table_header;
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (base::program_path(header.program, sizeof header.program) == 0) {
    const char* known = executed != nullptr ? executed : "?";
    strncpy(header.program, known, sizeof header.program - 1);
  }
  // Not the target of a link: redis-server is a link to redis-check-rdb, and people know the link's
  // name. The name of a program run by descriptor would be a number.
  const char* path = executed != nullptr ? executed : header.program;
  if (strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0) path = header.program;
  Writer(header.name, sizeof header.name).text(last_component(path)).finish();
  host.command = keep_command && argv != nullptr ? copy_command(argv) : nullptr;
  if (base::working_directory(host.directory, sizeof host.directory) == 0) host.directory[0] = '\0';
  base::host_name(header.node, sizeof header.node);
  size_t length =
      base::read_file("/proc/sys/kernel/random/boot_id", header.boot_id, sizeof header.boot_id);
  while (length > 0 && header.boot_id[length - 1] <= ' ') header.boot_id[--length] = '\0';
  host.pid = base::process_id();
  host.started = base::real_time();
  host.started_monotonic = base::monotonic_time();
}

void host_after_fork(uint32_t pid, uint32_t parent) {
  Host& host = g_host;
  host.parent = parent;
  host.pid = pid;
  host.started = base::real_time();
  host.started_monotonic = base::monotonic_time();
}

}  // namespace mtrace::report
