#include "base/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/own_memory.h"
#include "base/probe.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "base/table_memory.h"

namespace mtrace::base {

constinit format::LedgerHeader g_own_header = {};
constinit format::LedgerHeader* g_table_header = &g_own_header;

namespace {

// Bytes. Extents begin and end at multiples of this.
constexpr size_t kUnit = machine::kMostPage;
constexpr size_t kLittleChunk = 64 * 1024;
constexpr uint64_t kLongestWait = 1'000'000'000u;  // nanoseconds

char g_path[4096];
FileIdentity g_identity;
// The extents that this process has mapped. In a fork's child that still shares the parent's header
// the header lists more, as the parent adds extents.
struct Range {
  uintptr_t address;
  uint64_t offset;
  uint32_t units;
  bool has_addresses;  // may hold addresses of other parts
  size_t size() const { return size_t{units} * kUnit; }
};
Range g_ranges[format::kMostLedgerExtents];
uint32_t g_range_count = 0;
uint64_t g_turn = 0;
uintptr_t g_little = 0;
size_t g_little_left = 0;
uintptr_t g_parts = 0;
size_t g_parts_left = 0;
size_t g_parts_made = 0;

constexpr size_t whole_units(size_t bytes) { return (bytes + kUnit - 1) & ~(kUnit - 1); }

constexpr uint32_t units_of(size_t bytes) { return static_cast<uint32_t>(bytes / kUnit); }

// Opens the file to read and write. A negative errno, -ESTALE if the path leads to another file.
long open_again() {
  const long fd = call(SYS_openat, AT_FDCWD, g_path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (failed(fd)) return fd;
  struct stat info = {};
  const long result = call(SYS_fstat, fd, &info);
  if (failed(result) || FileIdentity{info.st_dev, info.st_ino} != g_identity) {
    close_file(static_cast<int>(fd));
    return -ESTALE;
  }
  return fd;
}

// Writes zeros, where the file system cannot reserve or a filter forbids it: to the end of the
// file, which is the start of the range, or lies behind it when an earlier try has failed.
long write_zeros(int fd, size_t bytes) {
  static constexpr char kZeros[4096] = {};
  while (bytes > 0) {
    const long wrote = call(SYS_write, fd, kZeros, bytes < sizeof kZeros ? bytes : sizeof kZeros);
    if (wrote == -EINTR) continue;
    if (wrote <= 0) return wrote == 0 ? -EIO : wrote;
    bytes -= wrote;
  }
  return 0;
}

// Reserves room on the disk for the range. All signals are blocked.
long reserve(int fd, uint64_t offset, size_t bytes) {
  if (offset + bytes > file_size_limit()) return -EFBIG;
  long result;
  do {
    result = call(SYS_fallocate, fd, 0, offset, bytes);
  } while (result == -EINTR);
  if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM) {
    result = write_zeros(fd, bytes);
  }
  // Another thread may have lowered the limit; the kernel then sends a signal.
  if (result == -EFBIG) discard_signal(SIGXFSZ);
  return result;
}

long map_shared(void* address, size_t bytes, int fd, uint64_t offset) {
  const int fixed = address != nullptr ? MAP_FIXED : 0;
  return map_own(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, fd,
                 static_cast<long>(offset));
}

format::LedgerExtent* extents_of(format::LedgerHeader& header) {
  return reinterpret_cast<format::LedgerFileHead&>(header).extents;
}

void add_extent(format::LedgerHeader& header, uintptr_t address, uint64_t offset, size_t bytes,
                bool has_addresses) {
  g_ranges[g_range_count] = {address, offset, units_of(bytes), has_addresses};
  extents_of(header)[g_range_count] = {address, offset, bytes};
  store(g_range_count, g_range_count + 1);
  store_release(header.extents_used, g_range_count);
}

// Uses the process's own header instead of the file's.
void leave_header() {
  format::LedgerHeader* const header = g_table_header;
  if (header == &g_own_header) return;
  g_own_header = *header;
  g_own_header.magic = 0;
  store_release(g_table_header, &g_own_header);
  unmap_memory(header, format::kLedgerHeaderBytes);
}

// Maps the window and the header of a file that is open and empty.
long map_new_file(int fd, void* window, size_t bytes) {
  constexpr uint64_t kHeader = format::kLedgerHeaderBytes;
  long result = reserve(fd, 0, kHeader + bytes);
  if (result != 0) return result;
  const long header = map_shared(nullptr, kHeader, fd, 0);
  if (failed(header)) return header;
  result = map_shared(window, bytes, fd, kHeader);
  if (failed(result)) {
    unmap_memory(reinterpret_cast<void*>(header), kHeader);
    return result;
  }
  g_range_count = 0;
  g_little_left = g_parts_left = g_parts_made = 0;
  auto* fresh = reinterpret_cast<format::LedgerHeader*>(header);
  *fresh = g_own_header;
  fresh->first_module = fresh->first_python_code = fresh->command = fresh->missing = 0;
  fresh->version = format::kLedgerVersion;
  fresh->size = kHeader + bytes;
  add_extent(*fresh, reinterpret_cast<uintptr_t>(window), kHeader, bytes, true);
  store_release(g_table_header, fresh);
  return 0;
}

// Moves the tables from the file without a name to one that is open and empty, at the same
// addresses: other threads hold some in their state, and none runs.
long move_to_file(int fd) {
  format::LedgerHeader* const header = g_table_header;
  const uint64_t size = header->size;
  long result = reserve(fd, 0, size);
  if (result != 0) return result;
  const long copy = map_shared(nullptr, size, fd, 0);
  if (failed(copy)) return copy;
  auto* const bytes = reinterpret_cast<char*>(copy);
  memcpy(bytes, header, format::kLedgerHeaderBytes);
  for (uint32_t i = 0; i < g_range_count; ++i) {
    const Range& range = g_ranges[i];
    memcpy(bytes + range.offset, reinterpret_cast<void*>(range.address), range.size());
  }
  unmap_memory(bytes, size);
  result = map_shared(header, format::kLedgerHeaderBytes, fd, 0);
  for (uint32_t i = 0; i < g_range_count && !failed(result); ++i) {
    const Range& range = g_ranges[i];
    result = map_shared(reinterpret_cast<void*>(range.address), range.size(), fd, range.offset);
  }
  return failed(result) ? result : 0;
}

long grow_file(size_t bytes, uint64_t offset) {
  // The program's filter may end it for a call that its author did not think of.
  if (may_be_filtered()) return -EPERM;
  if (g_range_count == format::kMostLedgerExtents) return -ENOBUFS;
  long result = 0;
  with_own_files([&] {
    const long fd = open_again();
    result = failed(fd) ? fd : reserve(static_cast<int>(fd), offset, bytes);
    if (result == 0) result = map_shared(nullptr, bytes, static_cast<int>(fd), offset);
    if (!failed(fd)) close_file(static_cast<int>(fd));
  });
  return result;
}

bool map_private(const Range& range, int fd, int placed) {
  // A kernel before 4.17 takes MAP_FIXED_NOREPLACE for a hint.
  return map_own(reinterpret_cast<void*>(range.address), range.size(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | placed, fd,
                 static_cast<long>(range.offset)) == static_cast<long>(range.address);
}

// Writes to each page, which makes it private: until then it is the file's, and changes with it.
void make_own(const Range& range) {
  const uintptr_t end = range.address + range.size();
  for (uintptr_t page = range.address; page < end; page += machine::page_bytes()) {
    fetch_add<uint64_t>(*reinterpret_cast<uint64_t*>(page), 0);
  }
}

// In the child of a fork: maps the extents that the parent has added since. Their places are free
// here as they were there, unless the parent has unmapped something after the fork.
bool map_later_extents(int fd) {
  format::LedgerHeader& header = *g_table_header;
  const uint32_t used = load_acquire(header.extents_used);
  for (uint32_t i = g_range_count; i < used && i < format::kMostLedgerExtents; ++i) {
    const format::LedgerExtent& extent = extents_of(header)[i];
    const Range range = {extent.address, extent.offset, units_of(extent.size), true};
    if (!map_private(range, fd, MAP_FIXED_NOREPLACE)) return false;
    g_ranges[g_range_count++] = range;
  }
  return true;
}

// Copies all pages that can hold addresses, and maps the parts that those lead to. All ranges are
// private. False: an address may lead to a part that could not be mapped.
bool keep_what_is_led_to(int fd) {
  bool good = true;
  for (uint32_t i = 0; i < g_range_count;) {
    for (; i < g_range_count; ++i) {
      if (g_ranges[i].has_addresses) make_own(g_ranges[i]);
    }
    // Pages copied by now lead to nothing that the parent makes after this.
    good &= map_later_extents(fd);
  }
  return good;
}

}  // namespace

long create_table_file(const char* path, void* window, size_t bytes) {
  if (strlen(path) >= sizeof g_path) return -ENAMETOOLONG;
  const uint64_t mask = block_signals();
  const long fd = create_file(path, O_RDWR | O_APPEND);
  long result = fd;
  if (!failed(fd)) {
    struct stat info = {};
    call(SYS_fstat, fd, &info);
    result = has_table_file() ? move_to_file(static_cast<int>(fd))
                              : map_new_file(static_cast<int>(fd), window, bytes);
    close_file(static_cast<int>(fd));
    if (result != 0) {
      remove_file(path);
    } else {
      g_identity = {info.st_dev, info.st_ino};
      strcpy(g_path, path);
    }
  }
  restore_signals(mask);
  return result;
}

const char* table_file_path() { return has_table_file() ? g_path : ""; }

bool tables_in_file() { return g_range_count != 0; }

bool is_table_file(uintptr_t address) {
  const auto is_in = [&](uintptr_t start, size_t bytes) { return address - start < bytes; };
  return has_table_file() &&
         (is_in(reinterpret_cast<uintptr_t>(g_table_header), format::kLedgerHeaderBytes) ||
          std::any_of(g_ranges, g_ranges + g_range_count,
                      [&](const Range& range) { return is_in(range.address, range.size()); }));
}

bool table_file_has_name() { return g_path[0] != '\0' && file_identity(g_path) == g_identity; }

long give_table_file(uint32_t user) {
  if (g_path[0] == '\0') return -ENOENT;
  long result = 0;
  with_own_files([&] {
    const long fd = open_again();
    struct stat info = {};
    result = failed(fd) ? fd : call(SYS_fstat, fd, &info);
    if (!failed(result)) result = call(SYS_fchown, fd, user, -1);
    if (!failed(result)) result = info.st_uid;
    if (!failed(fd)) close_file(static_cast<int>(fd));
  });
  return result;
}

void remove_table_file() {
  if (table_file_has_name()) remove_file(g_path);
}

void drop_table_file() {
  const Range window = g_ranges[0];
  for (uint32_t i = 1; i < g_range_count; ++i) {
    unmap_memory(reinterpret_cast<void*>(g_ranges[i].address), g_ranges[i].size());
  }
  leave_header();
  map_own(reinterpret_cast<void*>(window.address), window.size(), PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  g_table_growth.bytes = 0;
  g_range_count = 0;
  g_path[0] = '\0';
}

bool detach_table_file(bool midway) {
  const long fd = open_again();
  if (failed(fd)) return false;
  bool good = true;
  for (uint32_t i = 0; i < g_range_count; ++i) {
    good &= map_private(g_ranges[i], static_cast<int>(fd), MAP_FIXED);
  }
  if (good && midway) good = keep_what_is_led_to(static_cast<int>(fd));
  close_file(static_cast<int>(fd));
  leave_header();
  g_path[0] = '\0';
  return good;
}

TableTurn::TableTurn() : turn_(g_turn, kLongestWait) {}

void* TableTurn::grow(size_t bytes, bool has_addresses) {
  format::LedgerHeader* header = g_table_header;
  if (!has_table_file()) return nullptr;
  bytes = whole_units(bytes);
  const long result = turn_ ? grow_file(bytes, header->size) : -EBUSY;
  if (failed(result)) {
    store(header->missing_error, static_cast<int32_t>(-result));
    fetch_add<uint64_t>(header->missing, bytes);
    return nullptr;
  }
  // Room first, then what is in it: a thread that vanishes between leaves room unused.
  const uint64_t offset = header->size;
  store_release(header->size, offset + bytes);
  add_extent(*header, static_cast<uintptr_t>(result), offset, bytes, has_addresses);
  store(header->cost.memory, header->size);
  return reinterpret_cast<void*>(result);
}

void* TableTurn::grow_part(size_t bytes) {
  if (!turn_) return grow(bytes, false);
  if (g_parts_left < bytes) {
    const size_t more = whole_units(bytes + g_parts_made / 8);
    void* parts = grow(more, false);
    if (parts == nullptr) return nullptr;
    g_parts = reinterpret_cast<uintptr_t>(parts);
    g_parts_left = more;
    g_parts_made += more;
    store(g_table_header->cost.shadow, uint64_t{g_parts_made});
  }
  void* part = reinterpret_cast<void*>(g_parts);
  store(g_parts_left, g_parts_left - bytes);
  store_release(g_parts, g_parts + bytes);
  return part;
}

void* TableTurn::grow_little(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (!turn_ || bytes > kLittleChunk) return nullptr;
  if (g_little_left < bytes) {
    void* chunk = grow(kLittleChunk);
    if (chunk == nullptr) return nullptr;
    g_little = reinterpret_cast<uintptr_t>(chunk);
    g_little_left = kLittleChunk;
  }
  void* memory = reinterpret_cast<void*>(g_little);
  store(g_little_left, g_little_left - bytes);
  store_release(g_little, g_little + bytes);
  return memory;
}

}  // namespace mtrace::base
