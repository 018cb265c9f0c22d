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

#include "format/python.h"
#include "python/runtime.h"
#include "python/text.h"

namespace mtrace::unwind {

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

// The code object of a number, nullptr: none.
const PythonCode* python_code(uint32_t number);
// The file of a number, nullptr: none.
const PythonFile* python_file(uint32_t number);

// In the child of a fork, with one thread and new tables: logs the code objects to the file behind
// the tables (base/table_file.h), if there is one.
void log_python_again();

}  // namespace mtrace::unwind
