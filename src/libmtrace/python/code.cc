#include "python/code.h"

#include <string.h>

#include <algorithm>

#include "base/atomic.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "modules/module_entry.h"
#include "modules/modules.h"

namespace mtrace::unwind {
namespace {

// Objects that get a number when they first appear, found by a 64-bit identity. Insert-only,
// lock-free, of a fixed size; async-signal-safe. The memory is mapped with the first object.
// `kPlaces`: a power of two, several times kMost.
template <typename T, uint32_t kMost, uint32_t kPlaces>
class NumberedSet {
 public:
  // Number, from 1, of the object with this identity for which is_same(object) is true. If there is
  // none, make(number) makes it, or returns nullptr: no room. 0: no room, `*made` is then false.
  template <typename IsSame, typename Make>
  uint32_t find_or_make(uint64_t identity, IsSame is_same, Make make, bool* made) {
    uint32_t fresh = 0;
    *made = false;
    if (!has_tables()) return 0;
    for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
      uint32_t& place = tables_->places[(identity + probe) % kPlaces];
      uint32_t number = load_acquire(place);
      if (number == 0) {
        if (fresh == 0 && (fresh = enter(make)) == 0) return 0;
        // The loser of a race goes on with the winner's, and its own number stays unused.
        if (compare_exchange(place, number, fresh)) return *made = true, fresh;
      }
      const T& known = *find(number);
      if (known.identity == identity && is_same(known)) return number;
    }
    return 0;
  }

  // nullptr: no object has the number.
  const T* find(uint32_t number) const {
    const bool is_number = number != 0 && number <= kMost && load_acquire(tables_) != nullptr;
    return is_number ? known(number) : nullptr;
  }
  // find() for a number that this set has given out.
  const T* known(uint32_t number) const { return load_acquire(tables_->things[number]); }
  uint32_t highest() const {
    const uint32_t count = load(count_);
    return count < kMost ? count : kMost;
  }
  bool is_full() const { return load(count_) >= kMost; }

 private:
  static constexpr uint32_t kMostProbes = 64;
  struct Tables {
    const T* things[kMost + 1];
    uint32_t places[kPlaces];
  };

  // Maps the tables, which another thread may do meanwhile. False: no memory.
  bool has_tables() {
    if (load_acquire(tables_) != nullptr) return true;
    auto* const made = static_cast<Tables*>(base::map_memory(sizeof(Tables)));
    if (made == nullptr) return false;
    Tables* none = nullptr;
    if (!compare_exchange(tables_, none, made)) base::unmap_memory(made, sizeof(Tables));
    return true;
  }

  template <typename Make>
  uint32_t enter(Make make) {
    if (is_full()) return 0;
    const uint32_t number = fetch_add(count_, 1u) + 1;
    if (number > kMost) return 0;
    const T* const thing = make(number);
    if (thing == nullptr) return 0;
    store_release(tables_->things[number], thing);
    return number;
  }

  Tables* tables_ = nullptr;
  uint32_t count_ = 0;
};

constexpr auto kCareful = PythonAccess::kCareful;
constexpr uint32_t kMostCode = format::kMostPythonCode;
constexpr uint64_t kMostBytes = 16u << 20;

NumberedSet<PythonCode, kMostCode, 1u << 18> g_code;
NumberedSet<PythonFile, kMostPythonFiles, 1u << 15> g_files;
uint64_t g_bytes = 0;  // of both

// Numbers of code objects as they were seen last, by address: address / 16 above the number. Eight
// places an address: two functions of one path that shared a single place would take it from each
// other at every walk, and a code object without a place is read anew, by some 30 system calls.
constexpr unsigned kSeenBits = 7;  // of the lines
constexpr unsigned kSeenWays = 8;
constexpr unsigned kNumberBits = 16;
static_assert(kMostCode < 1u << kNumberBits);
struct alignas(64) SeenLine {
  uint64_t places[kSeenWays];
};
SeenLine g_seen[1u << kSeenBits];
SeenLine& seen_line(uintptr_t address) {
  return g_seen[address * 0x9e3779b97f4a7c15u >> (64 - kSeenBits)];
}
uint64_t seen_as(uintptr_t address, uint32_t number) {
  return uint64_t{address} >> 4 << kNumberBits | number;
}
// The place of the address; nullptr: not seen. Another thread may use the place for another address
// meanwhile.
uint64_t* find_seen(uintptr_t address, uint64_t* seen) {
  for (uint64_t& place : seen_line(address).places) {
    *seen = load(place);
    if (*seen != 0 && *seen >> kNumberBits == address >> 4) return &place;
  }
  return nullptr;
}
// A place for an address that was not seen: a free one, or one of a full line, in turn.
uint64_t& place_for_new(uintptr_t address) {
  static constinit uint32_t turn = 0;
  SeenLine& line = seen_line(address);
  for (uint64_t& place : line.places) {
    if (load(place) == 0) return place;
  }
  return line.places[fetch_add(turn, 1u) % kSeenWays];
}

bool is_full() { return g_code.is_full() || g_files.is_full() || load(g_bytes) > kMostBytes; }

// nullptr: no room.
template <typename T>
T* memory_for(size_t bytes) {
  bytes = (sizeof(T) + bytes + kTextBlock - 1) & ~(kTextBlock - 1);
  if (fetch_add<uint64_t>(g_bytes, bytes) > kMostBytes) return nullptr;
  return static_cast<T*>(modules::module_memory(bytes));
}

// The fields of a code object.
struct Seen {
  uint32_t first_line;
  uint64_t instructions;
  uint64_t table_bytes;
  uintptr_t table;
  PythonText name;
  PythonText file;
  uintptr_t file_object;
};

[[gnu::always_inline]] inline bool look_at(const PythonRuntime& python, PythonAccess access,
                                           uintptr_t address, Seen* seen) {
  const PythonLayout& layout = *python.layout;
  char code_room[256];
  char size_room[kPythonSize + sizeof seen->table_bytes];
  const char* const code = see_python(access, address, code_room, layout.code_instructions);
  if (code == nullptr) return false;
  seen->first_line = python_field<uint32_t>(code, layout.code_first_line);
  seen->instructions = python_field<uint64_t>(code, kPythonSize);
  const auto table = python_field<uintptr_t>(code, layout.code_table);
  const char* const head = see_python(access, table, size_room, sizeof size_room);
  if (head == nullptr) return false;
  seen->table_bytes = python_field<uint64_t>(head, kPythonSize);
  seen->table = table + kPythonBytes;
  seen->file_object = python_field<uintptr_t>(code, layout.code_file);
  return find_text(layout, access, python_field<uintptr_t>(code, layout.code_name), &seen->name) &&
         find_text(layout, access, seen->file_object, &seen->file);
}

// Whether the str `text` equals `kept`, which is ASCII and was kept whole.
[[gnu::always_inline]] inline bool is_ascii(const PythonLayout& layout, const char* text,
                                            const char* kept, uint64_t length) {
  return python_field<uint64_t>(text, kPythonSize) == length &&
         (python_field<uint32_t>(text, kPythonTextState) & kTextForm) == kTextAscii &&
         same_bytes(text + layout.text_ascii, kept, length);
}

// Whether `object`, a code object that a frame refers to, still equals `code`, which is plain.
[[gnu::always_inline]] inline bool is_plainly(const PythonLayout& layout, const char* object,
                                              const PythonCode& code, PythonFileSeen& last) {
  if (python_field<uint32_t>(object, layout.code_first_line) != code.first_line ||
      python_field<uint64_t>(object, kPythonSize) != code.instructions ||
      !is_ascii(layout, python_field<const char*>(object, layout.code_name), code.name(),
                code.name_length)) {
    return false;
  }
  const PythonFileSeen file = {python_field<uintptr_t>(object, layout.code_file), code.file};
  if (file == last) return true;
  if (!is_ascii(layout, reinterpret_cast<const char*>(file.object), file.file->text(),
                file.file->length)) {
    return false;
  }
  last = file;
  return true;
}

bool same_file(PythonAccess access, const PythonText& text, const PythonFile& file) {
  return same_text(access, text, file.text(), file.bytes, file.length, PythonFile::kMostText);
}

[[gnu::always_inline]] inline bool same_code(PythonAccess access, const Seen& seen,
                                             const PythonCode& code) {
  return seen.first_line == code.first_line && seen.instructions == code.instructions &&
         seen.table_bytes == code.table_bytes &&
         same_text(access, seen.name, code.name(), code.name_bytes, code.name_length,
                   PythonCode::kMostName);
}

// Copies the text to `to` as it is kept, in UTF-8 of `most` bytes at most. False: it cannot be
// read.
bool keep(const PythonText& text, size_t most, char* to, uint32_t* bytes) {
  *bytes = 0;
  return each_piece(kCareful, text, most, [&](const char* piece, size_t size) {
    memcpy(to + *bytes, piece, size);
    *bytes += static_cast<uint32_t>(size);
    return true;
  });
}

bool names_object(const char* path, size_t bytes) {
  for (uint32_t index = 0; const modules::Module* module = modules::module_at(index); ++index) {
    if (strncmp(module->path, path, bytes) == 0 && module->path[bytes] == '\0') return true;
  }
  return false;
}

// The file with this name, `bytes` of `kept`. nullptr: no room.
const PythonFile* enter_file(const PythonText& text, const char* kept, uint32_t bytes) {
  const uint64_t identity = format::module_identity(kept, bytes);
  bool made;
  const uint32_t number = g_files.find_or_make(
      identity,
      [&](const PythonFile& known) {
        return known.bytes == bytes && memcmp(known.text(), kept, bytes) == 0;
      },
      [&](uint32_t fresh) {
        auto* const file = memory_for<PythonFile>(bytes);
        if (file == nullptr) return file;
        const bool is_twin = names_object(kept, bytes);
        *file = {identity, text.length, bytes, fresh, is_twin ? format::kPythonGeneration : 1};
        memcpy(file + 1, kept, bytes);
        return file;
      },
      &made);
  return g_files.find(number);
}

// Sets the identity of `code`, whose other fields are set. False: its table cannot be read.
bool find_identity(const Seen& seen, const char* name, PythonCode* code) {
  format::PythonIdentity sum;
  sum.add(code->file->identity);
  sum.add(name, code->name_bytes);
  sum.add(code->name_length);
  sum.add(code->first_line);
  sum.add(code->instructions);
  for (size_t at = 0; at < code->table_kept();) {
    char piece[256];
    const size_t bytes = std::min(sizeof piece, code->table_kept() - at);
    if (!base::read_memory(seen.table + at, piece, bytes)) return false;
    sum.add(piece, bytes);
    at += bytes;
  }
  sum.add(code->table_bytes);
  code->identity = sum.value();
  return true;
}

// Copies a code object. nullptr: no room, or the object is gone.
PythonCode* make_code(const Seen& seen, const PythonCode& head, const char* name) {
  auto* const made = memory_for<PythonCode>(head.name_bytes + head.table_kept());
  if (made == nullptr) return nullptr;
  *made = head;
  auto* const to = reinterpret_cast<char*>(made + 1);
  memcpy(to, name, head.name_bytes);
  return base::read_memory(seen.table, to + head.name_bytes, head.table_kept()) ? made : nullptr;
}

// Logs the code object to the file behind the tables, for its readers.
void log_code(const PythonCode& code, uint32_t number) {
  format::LedgerHeader* header = base::g_table_header;
  if (!base::has_table_file()) return;
  const size_t name_and_table = code.name_bytes + code.table_kept();
  base::TableTurn turn;
  auto* logged = static_cast<format::LedgerPythonCode*>(
      turn.grow_little(sizeof(format::LedgerPythonCode) + name_and_table + code.file->bytes));
  if (logged == nullptr) return;
  logged->identity = code.identity;
  logged->number = number;
  logged->first_line = code.first_line;
  logged->name_bytes = code.name_bytes;
  logged->table_bytes = static_cast<uint32_t>(code.table_kept());
  logged->file_bytes = code.file->bytes;
  char* at = reinterpret_cast<char*>(logged + 1);
  memcpy(at, code.name(), name_and_table);
  memcpy(at + name_and_table, code.file->text(), code.file->bytes);
  logged->next = load(header->first_python_code);
  store_release(header->first_python_code, reinterpret_cast<uint64_t>(logged));
}

// Returns the number of the code object, and gives it one if it has none. 0: no room.
[[gnu::noinline]] uint32_t enter(const Seen& seen) {
  char kept[PythonFile::kMostText];  // the file's name, then the function's
  static_assert(sizeof kept >= PythonCode::kMostName);
  uint32_t bytes;
  if (!keep(seen.file, sizeof kept, kept, &bytes)) return 0;
  // A module of a memlog has a name.
  if (bytes == 0) kept[bytes++] = '?';
  PythonCode head = {};
  head.file = enter_file(seen.file, kept, bytes);
  if (head.file == nullptr || !keep(seen.name, PythonCode::kMostName, kept, &head.name_bytes)) {
    return 0;
  }
  head.instructions = seen.instructions;
  head.table_bytes = seen.table_bytes;
  head.name_length = seen.name.length;
  head.first_line = seen.first_line;
  head.is_plain = seen.name.ascii && seen.name.length == head.name_bytes && seen.file.ascii &&
                  seen.file.length == head.file->bytes;
  if (!find_identity(seen, kept, &head)) return 0;
  bool made;
  const uint32_t number = g_code.find_or_make(
      head.identity,
      [&](const PythonCode& known) {
        return known.file == head.file && same_code(kCareful, seen, known);
      },
      [&](uint32_t) { return make_code(seen, head, kept); }, &made);
  if (made) log_code(*g_code.find(number), number);
  return number;
}

// Counts a frame whose code object has no number.
[[gnu::noinline]] uint32_t lost() {
  fetch_add<uint64_t>(base::g_table_header->lost_python, 1);
  return 0;
}

}  // namespace

uint32_t number_of_code(const PythonRuntime& python, PythonAccess access, uintptr_t address,
                        PythonFileSeen& last) {
  uint64_t known;
  uint64_t* const place = find_seen(address, &known);
  const auto number = static_cast<uint16_t>(known);
  const bool has_number = place != nullptr && number != 0;
  if (has_number && access == PythonAccess::kDirect && g_code.find(number)->is_plain &&
      is_plainly(*python.layout, reinterpret_cast<const char*>(address), *g_code.find(number),
                 last)) {
    return number;
  }
  Seen seen;
  if (!look_at(python, access, address, &seen)) return lost();
  if (has_number && same_code(access, seen, *g_code.find(number)) &&
      same_file(access, seen.file, *g_code.find(number)->file)) {
    return number;
  }
  // An object that found no room is not searched for at each allocation.
  const uint32_t entered = place != nullptr && number == 0 && is_full() ? 0 : enter(seen);
  store(place != nullptr ? *place : place_for_new(address), seen_as(address, entered));
  return entered != 0 ? entered : lost();
}

const PythonCode* python_code(uint32_t number) { return g_code.find(number); }

const PythonFile* python_file(uint32_t number) { return g_files.find(number); }

void log_python_again() {
  for (uint32_t number = 1; number <= g_code.highest(); ++number) {
    if (const PythonCode* code = g_code.find(number)) log_code(*code, number);
  }
}

}  // namespace mtrace::unwind
