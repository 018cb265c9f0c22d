#include "cli/attach_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "attach/borrowed_thread.h"
#include "attach/error.h"
#include "attach/held_process.h"
#include "cli/process.h"
#include "format/attach.h"
#include "format/restart_code.h"
#include "symbolize/loaded_file.h"

namespace mtrace::cli {
namespace {

using attach::AttachError;
using attach::Care;
using attach::Object;

// Functions in which a thread may hold a lock of the allocator, of the loader, or of the threads.
constexpr std::string_view kGuarded[] = {"malloc",         "calloc",
                                         "realloc",        "reallocarray",
                                         "free",           "cfree",
                                         "memalign",       "aligned_alloc",
                                         "posix_memalign", "valloc",
                                         "pvalloc",        "malloc_usable_size",
                                         "free_sized",     "free_aligned_sized",
                                         "malloc_trim",    "malloc_info",
                                         "mallinfo",       "mallinfo2",
                                         "malloc_stats",   "mallopt",
                                         "dlopen",         "dlmopen",
                                         "dlclose",        "dlsym",
                                         "dlvsym",         "dladdr",
                                         "dladdr1",        "dlinfo",
                                         "dlerror",        "dl_iterate_phdr",
                                         "fork",           "_Fork",
                                         "vfork",          "pthread_create",
                                         "posix_spawn",    "posix_spawnp"};
constexpr std::string_view kWaits[] = {"pthread_cond_wait", "pthread_cond_timedwait",
                                       "pthread_cond_clockwait"};

template <size_t kSize>
bool is_one_of(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string base_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t deleted = name.find(" (deleted)");
  return name.substr(0, deleted);
}

// Value of a line of /proc/PID/status; empty: there is none.
std::string status_of(pid_t pid, const std::string& key) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + ":")) continue;
    const size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

// Reasons that can be read off /proc.
void refuse_what_never_works(pid_t pid) {
  const std::string state = status_of(pid, "State");
  if (state.empty()) throw AttachError("is no process");
  if (pid == 1)
    throw AttachError("is the first process of this system: its end would be the end of all");
  if (pid == ::getpid()) throw AttachError("is this program itself");
  if (state[0] == 'Z' || state[0] == 'X') throw AttachError("has ended, and waits for its parent");
  const std::string tracer = status_of(pid, "TracerPid");
  if (!tracer.empty() && tracer != "0") {
    throw AttachError(fmt::format("is traced already, by process {}", tracer));
  }
}

Object object_of(const symbolize::LoadedFile& file, const std::string& name) {
  Object object;
  object.name = name;
  object.file = {file.all.begin, file.all.end};
  for (const symbolize::Extent& code : file.code) object.code.push_back({code.begin, code.end});
  object.eh_frame_header = file.eh_frame_header;
  for (const symbolize::ExportedFunction& function : file.functions) {
    const attach::Range code = {function.code.begin, function.code.end};
    if (is_one_of(kGuarded, function.name)) object.guarded.push_back({code, function.name});
    if (is_one_of(kWaits, function.name)) object.waits.push_back(code);
  }
  return object;
}

uint64_t function_of(const symbolize::LoadedFile& file, std::string_view name) {
  for (const symbolize::ExportedFunction& function : file.functions) {
    if (function.name == name) return function.code.begin;
  }
  return 0;
}

// The rest of the last page of a segment.
attach::Range cave_of(const symbolize::LoadedFile& file) {
  for (const symbolize::Extent& code : file.code) {
    const uint64_t end = (code.end + 4095) & ~uint64_t{4095};
    const uint64_t begin = (code.end + 15) & ~uint64_t{15};
    const uint64_t size = attach::BorrowedThread::code_size() + attach::Restarts::code_size();
    if (begin + size <= end) return {begin, end};
  }
  return {};
}

// What an object means for the process.
void learn(attach::Target& target, const symbolize::LoadedFile& file, const std::string& name) {
  Object object = object_of(file, name);
  const bool is_libc = name == "libc.so.6";
  if (name.starts_with("ld-linux") || name.starts_with("ld-2") || name == "ld.so") {
    object.care = Care::kAll;
  } else if (const uint64_t entry = function_of(file, format::kAttachSymbol); entry != 0) {
    target.attach = entry;
    target.detach = function_of(file, format::kDetachSymbol);
    target.restart = function_of(file, format::kRestartSymbol);
    target.report = function_of(file, "mtrace_report");
    target.report_label = function_of(file, "mtrace_report_label");
    object.care = Care::kAll;
  } else if (is_libc) {
    target.calls = {function_of(file, "dlopen"), function_of(file, "dlsym"),
                    function_of(file, "dlerror"), function_of(file, "memfd_create"),
                    function_of(file, "close")};
  } else if (function_of(file, "malloc") != 0 && name.find(".so") != std::string::npos) {
    object.care = Care::kAllButWaiting;
  }
  if (target.cave.begin == 0 || is_libc) {
    const attach::Range cave = cave_of(file);
    if (cave.begin != 0) target.cave = cave;
  }
  target.objects.push_back(std::move(object));
}

void refuse_without_libc(const attach::Target& target, const std::vector<Mapping>& files) {
  const auto has = [&](std::string_view part) {
    return std::any_of(files.begin(), files.end(), [&](const Mapping& mapping) {
      return base_name(mapping.path).find(part) != std::string::npos;
    });
  };
  if (target.objects.empty()) throw AttachError("is made for another kind of processor");
  if (has("ld-musl")) throw AttachError("is linked with musl, not with glibc");
  if (target.calls.dlopen == 0 && !has("libc.so.6") && !has("libc-2")) {
    throw AttachError("is statically linked");
  }
  if (target.calls.dlopen == 0)
    throw AttachError("has a glibc before 2.35, without _dl_find_object");
  if (target.cave.begin == 0) throw AttachError("has no room for code anywhere");
}

}  // namespace

attach::Target attach_target(pid_t pid) {
  refuse_what_never_works(pid);
  attach::Target target;
  target.pid = pid;
  target.mappings = attach::executable_mappings(pid);
  const auto files = mapped_files(pid);
  if (!files) {
    throw AttachError(errno == EACCES || errno == EPERM
                          ? "belongs to another user, or protects itself"
                          : std::strerror(errno));
  }
  if (files->empty()) throw AttachError("is part of the kernel, or has just ended");
  for (const Mapping& mapping : *files) {
    const int descriptor = open_mapped(pid, mapping);
    if (descriptor < 0) continue;
    const auto file = symbolize::loaded_file(descriptor, mapping.begin, mapping.offset);
    ::close(descriptor);
    if (file) learn(target, *file, base_name(mapping.path));
  }
  refuse_without_libc(target, *files);
  return target;
}

attach::Done with_target(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<attach::Done(const attach::Target&, std::chrono::milliseconds)>& step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    const attach::Target target = attach_target(pid);
    const std::string preload = start_environment(pid, "LD_PRELOAD").value_or("");
    if (target.attach != 0 && preload.find("libmtrace.so") != std::string::npos) {
      throw AttachError("has libmtrace.so preloaded: memlog report asks it for a report");
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    try {
      return step(target, left);
    } catch (const attach::Outdated&) {
      if (Clock::now() >= deadline) throw AttachError("loads and unloads libraries all the time");
    }
  }
}

std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good) {
  if (arguments.operands().empty()) {
    throw UsageError(arguments.command() + ": no process given");
  }
  std::vector<pid_t> pids;
  for (const std::string& name : arguments.operands()) {
    const std::vector<pid_t> found = find_processes(name);
    if (found.empty()) {
      complain(streams, fmt::format("no process {}", name));
      good = false;
    }
    for (const pid_t pid : found) {
      if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    }
  }
  return pids;
}

}  // namespace mtrace::cli
