#include "process/ptrace/safe_point.h"

#include <fmt/format.h>
#include <libunwind.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "process/ptrace/registers.h"
#include "process/ptrace/tasks.h"

// libunwind's function for other processes, which none of its headers declares.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
                                                  unw_dyn_info_t* information,
                                                  unw_proc_info_t* found, int need_unwind_info,
                                                  void* argument);

namespace mtrace::process {

namespace {

constexpr unsigned kMostFrames = 512;

// System calls that wait, and that no allocator makes.
constexpr int64_t kWaiting[] = {SYS_epoll_pwait,     SYS_epoll_pwait2,  SYS_ppoll,  SYS_pselect6,
                                SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_wait4,  SYS_waitid,
                                SYS_io_getevents,    SYS_read,          SYS_readv,  SYS_recvfrom,
                                SYS_recvmsg,         SYS_recvmmsg,      SYS_accept, SYS_accept4,
                                SYS_write,           SYS_writev,        SYS_sendto, SYS_sendmsg,
                                SYS_connect,         SYS_msgrcv,        SYS_semop,  SYS_semtimedop,
                                SYS_flock,           SYS_io_uring_enter};

}  // namespace

// What libunwind reads from the thread whose stack it walks. Code and its tables do not change
// while the process is held; stacks do when a thread is let run.
struct SafePoints::Walker {
  Walker(const TargetMemory& memory, const std::vector<Object>& objects)
      : objects(objects),
        code(memory),
        stacks(memory),
        space(unw_create_addr_space(&kAccessors, 0)) {
    if (space == nullptr) throw std::runtime_error("libunwind: no address space");
    unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
  }
  ~Walker() { unw_destroy_addr_space(space); }

  const Object* object_at(uint64_t address) const {
    for (const Object& object : objects) {
      if (object.holds(address)) return &object;
    }
    return nullptr;
  }

  bool is_file(uint64_t address) const {
    for (const Object& object : objects) {
      if (address >= object.file.begin && address < object.file.end) return true;
    }
    return false;
  }

  static Walker& of(void* argument) { return *static_cast<Walker*>(argument); }
  static int find_table(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* found, int need,
                        void* argument);
  static int access_memory(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write,
                           void* argument) {
    Walker& walker = of(argument);
    PageCache& cache = walker.is_file(address) ? walker.code : walker.stacks;
    return write == 0 && cache.read_word(address, value) ? 0 : -UNW_EINVAL;
  }
  static int access_register(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write,
                             void* argument);

  static unw_accessors_t kAccessors;

  const std::vector<Object>& objects;
  PageCache code;
  PageCache stacks;
  unw_addr_space_t space;
  user_regs_struct registers = {};
};

unw_accessors_t SafePoints::Walker::kAccessors = {
    .find_proc_info = find_table,
    .put_unwind_info = [](unw_addr_space_t, unw_proc_info_t*, void*) {},
    .get_dyn_info_list_addr = [](unw_addr_space_t, unw_word_t*, void*) -> int {
      return -UNW_ENOINFO;
    },
    .access_mem = access_memory,
    .access_reg = access_register,
    .access_fpreg = [](unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) -> int {
      return -UNW_EBADREG;
    },
    .resume = [](unw_addr_space_t, unw_cursor_t*, void*) -> int { return -UNW_EINVAL; },
    .get_proc_name = [](unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) -> int {
      return -UNW_ENOINFO;
    },
};

// Searches .eh_frame_hdr (Linux Standard Base): version, three encodings, a pointer, the number of
// entries, and the entries. In the usual encoding these are pairs of 32-bit numbers relative to its
// start.
int SafePoints::Walker::find_table(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* found,
                                   int need, void* argument) {
  constexpr uint64_t kEncodings = 0x3b031b01;
  const Object* object = of(argument).object_at(ip);
  uint64_t head;
  uint64_t rest;
  if (object == nullptr || object->eh_frame_header == 0 ||
      !of(argument).code.read_word(object->eh_frame_header, &head) ||
      !of(argument).code.read_word(object->eh_frame_header + 8, &rest) ||
      (head & 0xffffffff) != kEncodings) {
    return -UNW_ENOINFO;
  }
  const uint64_t entries = rest & 0xffffffff;
  unw_dyn_info_t table = {};
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.start_ip = object->code.front().begin;
  table.end_ip = object->code.back().end;
  table.u.rti.segbase = object->eh_frame_header;
  table.u.rti.table_data = object->eh_frame_header + 12;
  table.u.rti.table_len = entries * 8 / sizeof(unw_word_t);
  return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, found, need, argument);
}

int SafePoints::Walker::access_register(unw_addr_space_t, unw_regnum_t number, unw_word_t* value,
                                        int write, void* argument) {
  if (write != 0) return -UNW_EREADONLYREG;
  const unsigned long long* found = walked_register(of(argument).registers, number);
  if (found == nullptr) return -UNW_EBADREG;
  *value = *found;
  return 0;
}

SafePoints::SafePoints(const TargetMemory& memory, std::vector<Object> objects,
                       const Restarts& restarts)
    : memory_(memory),
      objects_(std::move(objects)),
      restarts_(restarts),
      walker_(std::make_unique<Walker>(memory, objects_)) {}
SafePoints::~SafePoints() = default;

void SafePoints::forget_stacks() { walker_->stacks.forget(); }

template <typename Visit>
bool SafePoints::walk(const Visit& visit) {
  restarts_.leave(&walker_->registers);
  unw_cursor_t cursor;
  if (unw_init_remote(&cursor, walker_->space, walker_.get()) != 0) return false;
  for (unsigned frame = 0; frame < kMostFrames; ++frame) {
    unw_word_t address = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &address);
    // The return address may already belong to the next function.
    if (frame > 0 && unw_is_signal_frame(&cursor) <= 0) --address;
    // Code without call-frame information, as JIT compilers make: the thread is in no function of
    // libc.
    if (visit(address) || unw_step(&cursor) <= 0) break;
  }
  return true;
}

std::optional<std::string> SafePoints::inside(pid_t tid) {
  if (!Tasks::registers(tid, &walker_->registers)) return "its end";
  bool waits = false;
  std::optional<std::string> found;
  const bool walked = walk([&](uint64_t address) {
    const Object* object = walker_->object_at(address);
    if (object == nullptr) return false;
    for (const Range& range : object->passes) {
      if (range.holds(address)) return false;
    }
    for (const Range& range : object->waits) waits |= range.holds(address);
    if (object->care == Care::kAll || (object->care == Care::kAllButWaiting && !waits)) {
      found = object->name;
    }
    for (const Guarded& guarded : object->guarded) {
      if (!found && guarded.code.holds(address)) {
        found = fmt::format("{} of {}", guarded.name, object->name);
      }
    }
    return found.has_value();
  });
  return walked ? found : "code that is not known";
}

SafePoints::Calm SafePoints::calm(pid_t tid) {
  if (!Tasks::registers(tid, &walker_->registers)) return Calm::kUnknown;
  const int64_t number = current_call(walker_->registers, memory_);
  if (number < 0) return Calm::kUnknown;
  if (std::ranges::count(kWaiting, number) + std::ranges::count(kOwnWaitingCalls, number) > 0) {
    return Calm::kWaits;
  }
  if (number == SYS_nanosleep || number == SYS_clock_nanosleep) return Calm::kSleeps;
  bool waits = false;
  if (number != SYS_futex) return Calm::kUnknown;
  walk([&](uint64_t address) {
    const Object* object = walker_->object_at(address);
    if (object == nullptr) return true;
    for (const Range& range : object->waits) waits |= range.holds(address);
    return waits;
  });
  return waits ? Calm::kSleeps : Calm::kUnknown;
}

}  // namespace mtrace::process
