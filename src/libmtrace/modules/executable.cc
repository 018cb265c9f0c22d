#include "modules/executable.h"

#include <algorithm>
#include <atomic>

#include "base/file.h"
#include "base/probe.h"
#include "base/spawn.h"
#include "base/syscall.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kPageBits = 12;
constexpr uintptr_t kPages = 2048;  // 8 MiB of code; a power of two
constexpr uint32_t kMostUnasked = 4095;

// Pages that were found executable, by the low bits of their number.
std::atomic<uintptr_t> code_pages[kPages];
std::atomic<bool> met{false};
// Queries still to be answered false without a read, and how many there were after the last one.
// Hints: a lost update costs a read.
std::atomic<uint32_t> unasked{0};
std::atomic<uint32_t> rest{0};

// Reads lines "START-END rwxp ..." byte by byte.
class MapsReader {
 public:
  explicit MapsReader(uintptr_t address) : address_(address) {}

  bool found() const { return found_; }
  // False: the line of the address is complete, or the reader is past its place.
  bool take(char c) {
    if (c == '\n') {
      field_ = kStart;
      start_ = end_ = 0;
      return true;
    }
    switch (field_) {
      case kStart:
        if (c != '-') return add(start_, c);
        field_ = kEnd;
        return address_ >= start_;
      case kEnd:
        if (c != ' ') return add(end_, c);
        field_ = address_ < end_ ? kRead : kRest;
        return true;
      case kRead:
        field_ = kWrite;
        return true;
      case kWrite:
        field_ = kExecute;
        return true;
      case kExecute:
        found_ = c == 'x';
        return false;
      case kRest:
        return true;
    }
    return false;
  }

 private:
  enum Field : uint8_t { kStart, kEnd, kRead, kWrite, kExecute, kRest };

  static bool add(uintptr_t& number, char c) {
    number = number << 4 | static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    return true;
  }

  const uintptr_t address_;
  Field field_ = kStart;
  uintptr_t start_ = 0;
  uintptr_t end_ = 0;
  bool found_ = false;
};

void read_maps(MapsReader& reader) {
  const long file = sys::open_to_read("/proc/thread-self/maps");
  if (sys::failed(file)) return;
  char text[1024];
  uint64_t at = 0;
  for (bool more = true; more;) {
    const long got = sys::read_at(static_cast<int>(file), text, sizeof text, at);
    if (sys::failed(got) || got == 0) break;
    at += static_cast<uint64_t>(got);
    for (long i = 0; more && i < got; ++i) more = reader.take(text[i]);
  }
  sys::close_file(static_cast<int>(file));
}

bool is_mapped_executable(uintptr_t address) {
  MapsReader reader(address);
  sys::with_own_files([&] { read_maps(reader); });
  return reader.found();
}

bool look(uintptr_t address, bool always) {
  // The program's filter may end it for a call that its author did not think of.
  if (sys::may_be_filtered() || !sys::mapped(address >> kPageBits << kPageBits, 1)) return false;
  const uint32_t left = unasked.load(std::memory_order_relaxed);
  if (left != 0 && !always) {
    unasked.store(left - 1, std::memory_order_relaxed);
    return false;
  }
  const bool found = is_mapped_executable(address);
  if (always) return found;
  const uint32_t next =
      found ? 0 : std::min(2 * rest.load(std::memory_order_relaxed) + 1, kMostUnasked);
  rest.store(next, std::memory_order_relaxed);
  unasked.store(next, std::memory_order_relaxed);
  return found;
}

}  // namespace

bool is_executable(uintptr_t address, bool always) {
  const uintptr_t page = address >> kPageBits;
  if (page == 0) return false;
  if (code_pages[page % kPages].load(std::memory_order_relaxed) == page) return true;
  if (!look(address, always)) return false;
  note_executable(address);
  return true;
}

bool met_made_code() { return met.load(std::memory_order_relaxed); }

void note_made_code() {
  if (!met_made_code()) met.store(true, std::memory_order_relaxed);
}

void note_executable(uintptr_t address) {
  const uintptr_t page = address >> kPageBits;
  std::atomic<uintptr_t>& place = code_pages[page % kPages];
  if (place.load(std::memory_order_relaxed) != page) place.store(page, std::memory_order_relaxed);
}

}  // namespace mtrace::unwind
