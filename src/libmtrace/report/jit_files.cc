#include "report/jit_files.h"

#include <cstring>

#include "base/file.h"
#include "base/lines.h"
#include "base/syscall.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "modules/executable.h"

namespace mtrace::report {
namespace {

void write_perf_map(Writer& out, uint32_t pid) {
  char path[48];
  Writer name(path, sizeof path);
  name.text("/tmp/perf-").number(pid).text(".map");
  if (name.finish() != 0) return;
  const long bytes = sys::plain_file_size(path);
  if (sys::failed(bytes)) return;
  out.text("# ").text(format::kKeyPerfMap).text(": ");
  out.number(static_cast<uint64_t>(bytes)).text(" bytes\n");
}

// Finds a mapped file whose path ends in `name` in /proc/PID/maps. True: `path` is set.
bool find_mapped(int maps, const char* name, char* path, size_t capacity) {
  char text[8192];
  const size_t length = strlen(name);
  bool found = false;
  sys::each_line(maps, text, [&](const char* line, size_t size) {
    const char* const file = strchr(line, '/');
    const char* const end = line + size;
    const size_t bytes = file == nullptr ? 0 : static_cast<size_t>(end - file);
    found = bytes >= length && bytes < capacity && strcmp(end - length, name) == 0;
    if (found) memcpy(path, file, bytes + 1);
    return !found;
  });
  return found;
}

// perf's rule is that the runtime maps a page of the file.
void write_jit_dump(Writer& out, uint32_t pid) {
  if (!unwind::met_made_code()) return;
  char name[32];
  Writer writer(name, sizeof name);
  writer.text("/jit-").number(pid).text(".dump");
  if (writer.finish() != 0) return;
  const long maps = sys::open_to_read("/proc/thread-self/maps");
  if (sys::failed(maps)) return;
  char path[4096];
  const bool found = find_mapped(static_cast<int>(maps), name, path, sizeof path);
  sys::close_file(static_cast<int>(maps));
  const long bytes = found ? sys::plain_file_size(path) : -1;
  if (sys::failed(bytes)) return;
  out.text("# ").text(format::kKeyJitDump).text(": ");
  out.number(static_cast<uint64_t>(bytes)).text(" bytes ");
  out.escaped(path, strlen(path), format::kReservedNone).put('\n');
}

}  // namespace

void write_jit_files(Writer& out, uint32_t pid) {
  write_perf_map(out, pid);
  write_jit_dump(out, pid);
}

}  // namespace mtrace::report
