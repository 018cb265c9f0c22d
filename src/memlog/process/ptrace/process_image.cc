#include "process/ptrace/process_image.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>

#include "format/attach_protocol.h"
#include "format/restart_code.h"
#include "format/sanitizers.h"
#include "model/symbols/elf_file.h"
#include "process/inspect/error.h"
#include "process/inspect/process.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/borrowed_thread.h"
#include "process/ptrace/held_process.h"
#include "process/ptrace/interruption.h"
#include "util/file.h"

namespace mtrace::process {
namespace {

// Functions in which a thread may hold a lock of the allocator, the loader or the thread library.
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
                                         "posix_spawn",    "posix_spawnp",
                                         "pthread_atfork", "__register_atfork"};
constexpr std::string_view kWaits[] = {"pthread_cond_wait", "pthread_cond_timedwait",
                                       "pthread_cond_clockwait", format::kHoldSymbol};

// How long to wait for a program to start.
constexpr auto kStart = std::chrono::seconds(1);

template <size_t kSize>
bool is_one_of(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Whether this is no container: the kernel's first namespace of processes has a fixed number.
bool is_first_namespace() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/ns/pid", ignored) == "pid:[4026531836]";
}

// Throws AttachError for the reasons visible in /proc.
void refuse_what_never_works(pid_t pid) {
  const std::string state = task_status(pid, pid, "State");
  if (state.empty()) throw AttachError("does not exist");
  if (pid == 1 && is_first_namespace()) {
    throw AttachError(
        "is the first process of this system: if it died, all others would; start it with memlog "
        "run, or with LD_PRELOAD");
  }
  if (pid == ::getpid()) throw AttachError("is this program itself");
  if (state[0] == 'Z' || state[0] == 'X')
    throw AttachError("has ended, and waits for its parent to reap it");
  const std::string tracer = task_status(pid, pid, "TracerPid");
  if (!tracer.empty() && tracer != "0") {
    throw AttachError(fmt::format("is traced already, by process {}", tracer));
  }
}

Object object_of(const TargetObject& from) {
  Object object;
  object.name = from.name;
  object.file = {from.file.all.begin, from.file.all.end};
  for (const symbols::Extent& code : from.file.code) {
    object.code.push_back({code.begin, code.end});
  }
  object.eh_frame_header = from.file.eh_frame_header;
  for (const symbols::FilePart& part : from.file.segments) {
    const Range segment = {part.memory.begin, part.memory.end};
    if (segment.holds(object.eh_frame_header)) object.tables = segment;
  }
  for (const symbols::ExportedFunction& function : from.file.functions) {
    const Range code = {function.code.begin, function.code.end};
    if (is_one_of(kGuarded, function.name)) object.guarded.push_back({code, function.name});
    if (is_one_of(kWaits, function.name)) object.waits.push_back(code);
    if (function.name == format::kMainSymbol) object.passes.push_back(code);
  }
  return object;
}

// Finds the cave: the rest of the last page of a segment, where the file is mapped.
void take_cave(process::ProcessImage& target, const TargetObjects& objects,
               const TargetObject& object) {
  for (const symbols::Extent& code : object.file.code) {
    const uint64_t end = (code.end + 4095) & ~uint64_t{4095};
    const uint64_t begin = (code.end + 15) & ~uint64_t{15};
    const size_t size = BorrowedThread::code_size();
    if (begin + size + Restarts::code_size() > end || !objects.is_code(object, {begin, end})) {
      continue;
    }
    const std::string bytes = objects.file_bytes(object, begin, size);
    if (bytes.empty()) continue;
    target.cave = {begin, end};
    target.cave_bytes = bytes;
    return;
  }
}

void take_library(process::ProcessImage& target, const TargetObjects& objects,
                  const TargetObject& object) {
  const auto take = [&](std::string_view name) { return objects.callable(object, name); };
  target.attach = take(format::kAttachSymbol);
  target.detach = take(format::kDetachSymbol);
  target.restart = take(format::kRestartSymbol);
  target.report = take("mtrace_report");
  target.report_label = take("mtrace_report_label");
  target.twin = take(format::kTwinSymbol);
}

void take_libc(process::ProcessImage& target, const TargetObjects& objects,
               const TargetObject& object) {
  const auto take = [&](std::string_view name) { return objects.callable(object, name); };
  target.calls = {take("dlopen"), take("dlsym"), take("dlerror"), take("memfd_create"),
                  take("close")};
}

// Takes from an object what the image needs. Of several objects with the same name the first
// counts, as when the loader looks up functions.
void learn(process::ProcessImage& target, const TargetObjects& objects, const TargetObject& from) {
  Object object = object_of(from);
  const bool is_libc = from.name == "libc.so.6";
  const bool is_library = from.function(format::kAttachSymbol) != 0;
  const bool is_allocator =
      !is_libc && from.function("malloc") != 0 && from.name.find(".so") != std::string::npos;
  if (from.listed && (is_libc || is_library || is_allocator || from.is_loader)) {
    objects.require_same_file(from);
    if (from.is_loader) {
      object.care = Care::kAll;
    } else if (is_allocator || is_library) {
      object.care = Care::kAllButWaiting;
    }
  }
  const bool is_shared = is_libc || from.is_loader || from.name.find(".so") != std::string::npos;
  if (from.listed && from.in_first && !is_shared && from.function("malloc") != 0) {
    target.own_allocator = fmt::format("malloc of {}", from.name);
  }
  if (from.listed && from.in_first) {
    if (is_library && target.attach == 0) take_library(target, objects, from);
    const bool first_libc = is_libc && target.calls.dlopen == 0;
    if (first_libc) take_libc(target, objects, from);
    if (first_libc || target.cave.begin == 0) take_cave(target, objects, from);
  }
  target.objects.push_back(std::move(object));
}

void refuse_other_loaders(pid_t pid) {
  const symbols::Obstacle obstacle = symbols::preload_obstacle(fmt::format("/proc/{}/exe", pid));
  if (obstacle.foreign) throw AttachError(obstacle.why);
  if (obstacle.is_musl) throw AttachError("is linked with musl, not with glibc");
}

// A sanitizer's functions are in the program or in its own libraries. Patching calls there would
// show next to nothing, and the sanitizer would detect what the library does.
void refuse_sanitizers(const TargetObject& object) {
  for (const format::Sanitizer& one : format::kSanitizers) {
    if (object.function(one.start) == 0) continue;
    throw AttachError(fmt::format("is built with {}: what it allocates is not covered", one.name));
  }
}

void refuse_without_libc(const process::ProcessImage& target, const TargetObjects& objects) {
  const bool has_libc = objects.maps("libc.so.6") || objects.maps("libc-2");
  // musl's loader was run with the program as an argument.
  if (objects.maps("-musl")) throw AttachError("is linked with musl, not with glibc");
  if (objects.all().empty()) throw AttachError("is built for another processor architecture");
  if (objects.list().empty()) {
    if (objects.has_loader()) {
      throw AttachError("is only starting: its loader has listed no library yet");
    }
    throw AttachError(has_libc ? "has libc.so.6 mapped, but no loader runs it: the program is "
                                 "statically linked, or runs in an emulator"
                               : "is statically linked");
  }
  if (!has_libc) throw AttachError("has not loaded libc.so.6");
  if (target.calls.dlopen == 0)
    throw AttachError("uses a glibc older than 2.34, which has no dlopen: use memlog run");
  if (target.cave.begin == 0) throw AttachError("has no unused room in its code pages");
}

// Waits up to a second for a program between exec and the loader's work, which has nothing listed
// yet. `mappings` gets the mappings from before.
std::unique_ptr<TargetObjects> started_objects(pid_t pid, std::string& mappings) {
  const auto end = std::chrono::steady_clock::now() + kStart;
  for (;;) {
    mappings = executable_mappings(pid);
    auto objects = std::make_unique<TargetObjects>(pid);
    const bool started = !objects->list().empty() && objects->maps("libc");
    if (started || !objects->has_loader() || objects->maps("ld-musl") ||
        std::chrono::steady_clock::now() >= end) {
      return objects;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

process::ProcessImage process_image(pid_t pid) {
  refuse_what_never_works(pid);
  refuse_other_loaders(pid);
  const auto end = std::chrono::steady_clock::now() + kStart;
  for (;;) {
    process::ProcessImage target;
    target.pid = pid;
    try {
      const auto objects = started_objects(pid, target.mappings);
      target.r_debug = objects->r_debug();
      target.list = objects->list();
      for (const TargetObject& object : objects->all()) {
        refuse_sanitizers(object);
        learn(target, *objects, object);
      }
      refuse_without_libc(target, *objects);
      return target;
    } catch (const AttachError&) {
      // If the process has executed another program meanwhile, the data may be of both. Try again.
      if (executable_mappings(pid) == target.mappings || std::chrono::steady_clock::now() >= end) {
        throw;
      }
    }
  }
}

void with_image(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<void(const process::ProcessImage&, std::chrono::milliseconds)>& step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    check_interruption();
    const process::ProcessImage target = process_image(pid);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    try {
      return step(target, left);
    } catch (const Outdated&) {
      if (Clock::now() >= deadline)
        throw AttachError("keeps loading and unloading libraries: try again");
    }
  }
}

Done with_target(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<Done(const process::ProcessImage&, std::chrono::milliseconds)>& step) {
  Done done;
  with_image(pid, timeout,
             [&](const process::ProcessImage& target, std::chrono::milliseconds left) {
               const std::string preload = start_environment(pid, "LD_PRELOAD").value_or("");
               if (target.attach != 0 && preload.find("libmtrace.so") != std::string::npos) {
                 throw Preloaded("has libmtrace.so preloaded: memlog report asks it for a report");
               }
               done = step(target, left);
             });
  return done;
}

}  // namespace mtrace::process
