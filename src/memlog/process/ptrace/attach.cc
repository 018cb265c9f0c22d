#include "process/ptrace/attach.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/attach_protocol.h"
#include "format/restart_code.h"
#include "format/sanitizers.h"
#include "model/symbols/elf_file.h"
#include "process/inspect/process.h"
#include "process/inspect/system_calls.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/held_process.h"
#include "process/ptrace/safe_point.h"
#include "util/file.h"
#include "util/machine.h"

namespace mtrace::process {
namespace {

using format::AttachAnswer;
using format::Patch;

// Reads a text of the process, at most 256 bytes.
std::string read_text(const TargetMemory& memory, uint64_t address) {
  std::string text;
  char letter;
  while (address != 0 && text.size() < 256 && memory.read(address + text.size(), &letter, 1) &&
         letter != '\0') {
    text += letter;
  }
  return text;
}

// Adds the stub's code to the guarded objects: a thread may still be in the stub of a killed
// memlog, until the stub notices.
std::vector<Object> guarded_objects(const ProcessImage& target) {
  std::vector<Object> objects = target.objects;
  Object cave;
  cave.name = "a call of an earlier memlog";
  cave.file = target.cave;
  cave.code = {target.cave};
  cave.care = Care::kAll;
  objects.push_back(std::move(cave));
  return objects;
}

// A held process with a borrowed thread that makes calls.
class Session {
 public:
  Session(const ProcessImage& target, Clock::time_point deadline)
      : target_(target),
        process_(target_.pid, guarded_objects(target), target_.cave),
        deadline_(deadline) {
    process_.restarts().use_library(target_.restart);
    refuse_strict_mode(target_.pid);
    process_.stop(deadline);
    // To load the library is to allocate. Where malloc is the program's, so are perhaps other ways
    // into its allocator, and the thread that is borrowed may hold a lock that it would wait for.
    if (target_.attach == 0 && !target_.own_allocator.empty()) {
      lender_ = process_.stop_with_calm_lender(
          deadline, fmt::format("has its own allocator ({})", target_.own_allocator));
    }
    if (executable_mappings(target_.pid) != target_.mappings ||
        listed_objects(process_.memory(), target_.r_debug) != target_.list) {
      throw Outdated();
    }
    check_filters(target_.pid, process_.tasks().stopped());
    if (lender_ == 0) lender_ = process_.lender(false);
    thread_.emplace(process_.tasks(), process_.memory(), lender_, target_.cave, target_.cave_bytes,
                    deadline);
  }

  // Loads the library, which must not be loaded yet. Returns the address of mtrace_attach in it.
  uint64_t load(const std::string& path) {
    const uint64_t here = thread_->put(path);
    const auto flags = static_cast<uint64_t>(RTLD_NOW | RTLD_LOCAL);
    uint64_t library = 0;
    if (is_same_file(path)) {
      library = thread_->call(target_.calls.dlopen, here, flags);
      // Clear dlerror, so that the program does not see this failure.
      if (library == 0) thread_->call(target_.calls.dlerror);
    }
    if (library == 0) library = load_copy(path, flags);
    const uint64_t entry = thread_->call(target_.calls.dlsym, library,
                                         thread_->put(std::string(format::kAttachSymbol)));
    if (entry == 0)
      throw AttachError("has loaded a libmtrace.so of another version than this memlog");
    process_.restarts().use_library(thread_->call(
        target_.calls.dlsym, library, thread_->put(std::string(format::kRestartSymbol))));
    return entry;
  }

  // Calls a function of the process with a text as its argument.
  int64_t call(uint64_t function, const std::string& text) {
    const auto result = static_cast<int32_t>(thread_->call(function, thread_->put(text)));
    thread_->give_back();
    return result;
  }

  // Makes a copy of the process, which stays stopped.
  Snapshot copy(int64_t gone, bool make) {
    Snapshot found;
    if (make) found.threads = threads();
    process_.tasks().hold_clones(lender_, make);
    ask_twin(found, gone, make);
    process_.tasks().hold_clones(lender_, false);
    found.copy = process_.tasks().cloned();
    int status = 0;
    if (found.copy != 0) ::waitpid(found.copy, &status, __WALL);
    thread_->give_back();
    if (found.copy_id < 0) {
      throw NotCopied(fmt::format("cannot be copied (fork): {}",
                                  std::strerror(static_cast<int>(-found.copy_id))));
    }
    if (make && found.copy == 0) throw AttachError("has ended");
    found.stopped = stopped();
    return found;
  }

  // The process itself as it is now, stopped for the session's lifetime.
  Snapshot itself() {
    Snapshot found;
    found.threads = threads();
    ask_twin(found, 0, false);
    thread_->give_back();
    if (process_.tasks().any_running()) process_.stop(deadline_, lender_);
    found.copy = target_.pid;
    return found;
  }

  std::chrono::microseconds stopped() {
    const auto stopped = Clock::now() - process_.tasks().stopped_since();
    return std::chrono::duration_cast<std::chrono::microseconds>(stopped);
  }

  // Calls an entry point of the library and writes the words that it asks for.
  Done enter(uint64_t function, const std::string* options) {
    AttachAnswer answer = {};
    const uint64_t room = thread_->put(&answer, sizeof answer);
    if (options != nullptr) {
      thread_->call(function, thread_->put(options->data(), options->size()), room);
    } else {
      thread_->call(function, room);
    }
    if (!process_.memory().read(room, &answer, sizeof answer)) throw AttachError("cannot be read");
    answer.reason[sizeof answer.reason - 1] = '\0';
    if (answer.reason[0] != '\0') throw AttachError(fmt::format("refuses: {}", answer.reason));
    // The call may have needed the other threads to run. Stop them again.
    if (process_.tasks().any_running()) process_.stop(deadline_, lender_);
    const uint64_t written = write(answer);
    thread_->give_back();
    return {written, stopped()};
  }

 private:
  void ask_twin(Snapshot& found, int64_t gone, bool make) {
    format::TwinAnswer answer = {};
    const uint64_t room = thread_->put(&answer, sizeof answer);
    thread_->call(target_.twin, static_cast<uint64_t>(gone), make ? 1 : 0, room);
    if (!process_.memory().read(room, &answer, sizeof answer)) throw AttachError("cannot be read");
    found.copy_id = answer.pid;
    found.thread_state = answer.thread_state;
    found.thread_state_size = answer.thread_state_size;
  }

  std::vector<SnapshotThread> threads() {
    std::vector<SnapshotThread> found;
    for (const pid_t tid : process_.tasks().stopped()) {
      user_regs_struct registers = {};
      if (tid == lender_) {
        registers = thread_->before();
      } else if (!Tasks::registers(tid, &registers)) {
        continue;
      }
      // Those of the borrowed thread's vectors are saved in memory that is copied.
      SnapshotThread thread = {tid, util::machine::stack_pointer(registers),
                               Tasks::thread_pointer(tid, registers), Tasks::vector_registers(tid)};
      const auto general = std::bit_cast<std::array<uint64_t, sizeof registers / 8>>(registers);
      thread.words.insert(thread.words.end(), general.begin(), general.end());
      found.push_back(std::move(thread));
    }
    return found;
  }

  bool is_same_file(const std::string& path) const {
    struct stat here = {};
    struct stat there = {};
    return ::stat(path.c_str(), &here) == 0 &&
           ::stat(fmt::format("/proc/{}/root{}", target_.pid, path).c_str(), &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
  }

  // Loads a copy of the library in an unnamed file, when the process does not see the file or may
  // not read it.
  uint64_t load_copy(const std::string& path, uint64_t flags) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file || bytes.empty()) throw AttachError(fmt::format("needs {}: cannot be read", path));
    const auto descriptor = static_cast<int>(thread_->call(
        target_.calls.memfd_create, thread_->put(std::string("/libmtrace.so")), MFD_CLOEXEC));
    if (descriptor < 0) throw AttachError("could not make an unnamed file for the library");
    const std::string there = fmt::format("/proc/{}/fd/{}", target_.pid, descriptor);
    const int copy = ::open(there.c_str(), O_WRONLY | O_CLOEXEC);
    const bool good = copy >= 0 && ::write(copy, bytes.data(), bytes.size()) ==
                                       static_cast<ssize_t>(bytes.size());
    if (copy >= 0) ::close(copy);
    uint64_t library = 0;
    std::string why = "an unnamed file cannot be written";
    if (good) {
      library = thread_->call(target_.calls.dlopen,
                              thread_->put(fmt::format("/proc/self/fd/{}", descriptor)), flags);
      if (library == 0) why = read_text(process_.memory(), thread_->call(target_.calls.dlerror));
    }
    thread_->call(target_.calls.close, static_cast<uint64_t>(descriptor));
    if (library == 0) throw AttachError(fmt::format("could not load the library: {}", why));
    return library;
  }

  uint64_t write(const AttachAnswer& answer) {
    std::vector<Patch> patches(std::min(answer.count, format::kMostPatches));
    const TargetMemory& memory = process_.memory();
    if (!patches.empty() &&
        !memory.read(answer.patches, patches.data(), patches.size() * sizeof(Patch))) {
      throw AttachError("cannot be read");
    }
    uint64_t written = 0;
    for (const Patch& patch : patches) {
      uint64_t now = 0;
      if (!memory.read(patch.address, &now, sizeof now) || now != patch.before) continue;
      written += memory.write(patch.address, &patch.after, sizeof patch.after) ? 1 : 0;
    }
    if (written != patches.size()) {
      throw AttachError(fmt::format("could not be patched in {} of {} places",
                                    patches.size() - written, patches.size()));
    }
    return written;
  }

  const ProcessImage& target_;
  HeldProcess process_;
  Clock::time_point deadline_;
  pid_t lender_ = 0;
  std::optional<BorrowedThread> thread_;
};

// Runs a step. If the step fails and the process has ended, reports the end instead of the failure.
template <typename Step>
auto explained(pid_t pid, Step&& step) {
  try {
    return step();
  } catch (const AttachError&) {
    if (const std::string end = how_it_ended(pid); !end.empty()) throw AttachError(end);
    throw;
  }
}

}  // namespace

Done attach(const ProcessImage& target, const std::string& path, const std::string& options,
            std::chrono::milliseconds timeout) {
  return explained(target.pid, [&] {
    Session session(target, Clock::now() + timeout);
    return session.enter(target.attach != 0 ? target.attach : session.load(path), &options);
  });
}

Done detach(const ProcessImage& target, std::chrono::milliseconds timeout) {
  if (target.detach == 0) throw AttachError("is not attached to");
  return explained(target.pid, [&] {
    return Session(target, Clock::now() + timeout).enter(target.detach, nullptr);
  });
}

void report(const ProcessImage& target, const std::string& label,
            std::chrono::milliseconds timeout) {
  const uint64_t function = label.empty() ? target.report : target.report_label;
  if (function == 0) throw AttachError("has a libmtrace.so of another version than this memlog");
  explained(target.pid, [&] {
    Session session(target, Clock::now() + timeout);
    if (session.call(function, label) < 0) throw CallFailed("could not write its report");
  });
}

namespace {
void require_twin(const ProcessImage& target) {
  if (target.twin == 0) throw AttachError("has a libmtrace.so of another version than this memlog");
}
}  // namespace

Snapshot snapshot(const ProcessImage& target, int64_t gone, bool make,
                  std::chrono::milliseconds timeout) {
  require_twin(target);
  return explained(target.pid,
                   [&] { return Session(target, Clock::now() + timeout).copy(gone, make); });
}

struct StoppedSnapshot::Held {
  Held(ProcessImage target, std::chrono::milliseconds timeout)
      : image(std::move(target)), session(image, Clock::now() + timeout) {}
  ProcessImage image;
  Session session;
};

StoppedSnapshot::StoppedSnapshot(ProcessImage target, std::chrono::milliseconds timeout) {
  require_twin(target);
  const pid_t pid = target.pid;
  explained(pid, [&] {
    held_ = std::make_unique<Held>(std::move(target), timeout);
    snapshot_ = held_->session.itself();
  });
}

StoppedSnapshot::~StoppedSnapshot() = default;

std::chrono::microseconds StoppedSnapshot::stopped() const { return held_->session.stopped(); }

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
