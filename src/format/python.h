// Python functions in stacks: the layout of their frames, the line of an instruction, and the
// identity of a code object. The library records such frames, readers of ledgers decode them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/memlog.h"

namespace mtrace::format {

// Code objects that have a number of their own. Later ones share number 0.
inline constexpr uint32_t kMostPythonCode = 65535;

// A frame of a Python function takes the place of a look-up address. Bits 47 to 63 are set, as in
// no user address; below them is the number of the code object, and in the lowest bits the
// instruction that runs, counted from 1; 0: none has begun.
class PythonFrame {
 public:
  static constexpr unsigned kInstructionBits = 24;
  static constexpr int32_t kMostInstructions = (1 << kInstructionBits) - 2;

  // `instruction`: from -1, the function has been entered, to kMostInstructions.
  static constexpr uint64_t pack(uint32_t code, int32_t instruction) {
    return kMark | uint64_t{code} << kInstructionBits | static_cast<uint32_t>(instruction + 1);
  }
  // False for every address, the kernel's included.
  static constexpr bool is_one(uint64_t frame) {
    return (frame & kMark) == kMark && code(frame) <= kMostPythonCode;
  }
  static constexpr uint32_t code(uint64_t frame) {
    return static_cast<uint32_t>((frame & ~kMark) >> kInstructionBits);
  }
  static constexpr int32_t instruction(uint64_t frame) {
    return static_cast<int32_t>(frame & ((1u << kInstructionBits) - 1)) - 1;
  }

 private:
  static constexpr uint64_t kMark = ~uint64_t{0} << 47;
};

// Returns the frame of which 48 bits were kept, on the processor with this number in ELF files. The
// upper bits are those of Python's frames, and on x86_64 of the kernel's addresses. On aarch64
// programs lie in the upper half; of that, Python's frames take 1 TiB.
constexpr uint64_t whole_frame(uint64_t low, unsigned machine) {
  if (machine == EM_AARCH64) return low >> 40 == 0x80 ? low | ~uint64_t{0} << 48 : low;
  return static_cast<uint64_t>(static_cast<int64_t>(low << 16) >> 16);
}

// In memlogs, the generation of a source file with the path of a loaded object: more than objects
// can have, so that the two are different modules.
inline constexpr uint32_t kPythonGeneration = 65535;

// Why there are no Python functions in the stacks of an interpreter, or only on trial.
enum class PythonGap : uint32_t {
  kNone,
  kBeingNoted,  // another thread is writing the gap: as kNone
  kVersion,     // its structures are not known
  kUntried,     // its structures are known from headers only; no such interpreter was tried
  kOnTrial,     // as kUntried, but read on request (MTRACE_PYTHON=untried)
  kOffsets,     // its own description of its structures does not fit
  kSecond,      // another interpreter's functions are read
  kState,       // a thread's state was not where it should be, or not that of its stack
};
// Which gap, and of which interpreter. In the library's memory; its address is in the status block.
struct PythonCoverage {
  PythonGap gap;
  uint32_t version;  // PY_VERSION_HEX; 0: before 3.11
  uint64_t loop;     // an address in the interpreter's object
};
static_assert(sizeof(PythonCoverage) == 16);

// Text that follows the interpreter's version in the note about it.
constexpr const char* python_gap_reason(PythonGap gap) {
  switch (gap) {
    case PythonGap::kVersion:
      return " (known: 3.11, 3.13)";
    case PythonGap::kUntried:
      return " was not tried; MTRACE_PYTHON=untried reads them";
    case PythonGap::kOnTrial:
      return " was not tried; compare some with traceback.print_stack()";
    case PythonGap::kOffsets:
      return " with unexpected offsets of its structures";
    case PythonGap::kSecond:
      return ": another interpreter runs in this process";
    case PythonGap::kState:
      return ": some thread states were not found";
    case PythonGap::kNone:
    case PythonGap::kBeingNoted:
      break;
  }
  return "";
}

// Name in reports of a code object that found no room.
inline constexpr char kPythonWithoutRoom[] = "Python function without room";

// The line of an instruction by the location table of its code object (CPython 3.11 to 3.13,
// Objects/locations.md): entries of a byte 1CCCCLLL (C: form, L: instructions - 1) and bytes below
// 0x80. Returns 0 when no line belongs to it, or the table does not reach it.
class PythonLines {
 public:
  constexpr PythonLines(const unsigned char* table, size_t size, uint32_t first_line)
      : at_(table), end_(table + size), line_(first_line) {}

  constexpr uint32_t line_of(int32_t instruction) {
    if (instruction < 0) return line(true);
    for (int64_t next = 0; at_ != end_;) {
      const unsigned head = *at_++;
      const unsigned form = head >> 3 & 15;
      next += (head & 7) + 1;
      line_ += line_step(form);
      if (next > instruction) return line(form != kNone);
      while (at_ != end_ && *at_ < 0x80) ++at_;
    }
    return 0;
  }

 private:
  enum Form : unsigned { kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15 };

  constexpr uint32_t line(bool has_line) const {
    return has_line && line_ > 0 && line_ <= INT32_MAX ? static_cast<uint32_t>(line_) : 0;
  }
  constexpr int64_t line_step(unsigned form) {
    if (form >= kOneLine && form < kNoColumns) return form - kOneLine;
    return form == kNoColumns || form == kLong ? signed_number() : 0;
  }
  // Six bits a byte, the lowest first; bit 6: more follow. The lowest bit of all is the sign.
  constexpr int64_t signed_number() {
    uint64_t number = 0;
    for (unsigned shift = 0; at_ != end_ && *at_ < 0x80 && shift < 36; shift += 6) {
      const unsigned byte = *at_++;
      number |= uint64_t{byte & 63} << shift;
      if ((byte & 64) == 0) break;
    }
    const auto size = static_cast<int64_t>(number >> 1);
    return (number & 1) != 0 ? -size : size;
  }

  const unsigned char* at_;
  const unsigned char* const end_;
  int64_t line_;
};

// What makes a code object the same one in every process: its texts, its first line and its
// location table.
class PythonIdentity {
 public:
  constexpr void add(const char* bytes, size_t size) { value_ = fnv1a(bytes, size, value_); }
  constexpr void add(uint64_t number) { value_ = mix64(value_ ^ number); }
  constexpr uint64_t value() const { return value_; }

 private:
  uint64_t value_ = kFnv1aBasis;
};

// The offset of a frame in a memlog, where its module is the source file: 28 bits of the code
// object's identity, then the instruction.
constexpr uint64_t python_offset(uint64_t identity, uint64_t frame) {
  return identity >> 36 << PythonFrame::kInstructionBits |
         static_cast<uint32_t>(PythonFrame::instruction(frame) + 1);
}

// The last component of a source file's name; all of it, if that is empty.
inline const char* python_file_name(const char* path, size_t size, size_t* length) {
  size_t begin = size;
  while (begin > 0 && path[begin - 1] != '/') --begin;
  if (begin == size) begin = 0;
  *length = size - begin;
  return path + begin;
}

}  // namespace mtrace::format
