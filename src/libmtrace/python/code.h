// Copies of the code objects of Python functions that stacks name: texts and lines, made when a
// walk first comes to one. The library holds no reference, so a code object may be freed and
// another one take its address: each walk compares the object with the copy. Equal objects share
// one copy, whatever their addresses. Copies are never removed; at most 65,535, of 8,191 files, in
// 16 MiB.
//
// All functions are lock-free, thread-safe and async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"
#include "format/python.h"
#include "python/runtime.h"
#include "python/text.h"

namespace mtrace::unwind {

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
    auto* const made = static_cast<Tables*>(sys::map_memory(sizeof(Tables)));
    if (made == nullptr) return false;
    Tables* none = nullptr;
    if (!compare_exchange(tables_, none, made)) sys::unmap_memory(made, sizeof(Tables));
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

inline constexpr uint32_t kMostPythonFiles = 8191;

// A source file, as the interpreter calls it: "/home/ann/app.py", "<string>". Constant once it has
// its number, as is PythonCode.
struct alignas(kTextBlock) PythonFile {
  static constexpr size_t kMostText = 511;  // bytes that are kept, in UTF-8

  uint64_t identity;  // format::module_identity
  uint64_t length;    // characters, also of those that are not kept
  uint32_t bytes;     // kept; at least one
  uint32_t number;    // from 1
  // 1, or format::kPythonGeneration where a loaded object already had this path.
  uint32_t generation;

  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
};

struct alignas(kTextBlock) PythonCode {
  static constexpr size_t kMostName = 255;
  static constexpr size_t kMostTable = 32'000;

  uint64_t identity;  // format::PythonIdentity
  const PythonFile* file;
  uint64_t instructions;
  uint64_t table_bytes;  // of the location table; no more than kMostTable are kept
  uint64_t name_length;  // characters, also of those that are not kept
  uint32_t name_bytes;   // kept
  uint32_t first_line;
  bool is_plain;  // both texts are ASCII and kept whole

  const char* name() const { return reinterpret_cast<const char*>(this + 1); }
  const unsigned char* table() const {
    return reinterpret_cast<const unsigned char*>(name() + name_bytes);
  }
  size_t table_kept() const { return table_bytes < kMostTable ? table_bytes : kMostTable; }
};

// A str and the file that it was found to name, so that one walk does not compare it again.
struct PythonFileSeen {
  uintptr_t object;
  const PythonFile* file;
  bool operator==(const PythonFileSeen&) const = default;
};

// The number of the code object at `address`; 0: no room, or it cannot be read. Some 10 us for a
// new one. `last`: the walk's, zero at first.
uint32_t number_of_code(const PythonRuntime& python, PythonAccess access, uintptr_t address,
                        PythonFileSeen& last);

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

namespace internal {
extern NumberedSet<PythonCode, format::kMostPythonCode, 1u << 18> python_code;
}

// The code object of a number, nullptr: none.
const PythonCode* python_code(uint32_t number);
// The file of a number, nullptr: none.
const PythonFile* python_file(uint32_t number);

// Frames whose code object found no room or could not be read.
uint64_t lost_python_frames();

// In the child of a fork, with one thread and new tables: logs the code objects to the file behind
// the tables (base/table_file.h), if there is one.
void log_python_again();

}  // namespace mtrace::unwind
