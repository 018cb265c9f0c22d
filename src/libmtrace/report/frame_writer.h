// Writes stacks as in a memlog: lines of frames, and lines of the modules that the frames name.
// Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/writer.h"
#include "ledger/stack_table.h"
#include "modules/modules.h"
#include "python/code.h"
#include "report/tails.h"
#include "unwind/walker.h"

namespace mtrace::report {

// Which modules the frames of a text name, one bit each: loaded objects, and source files of
// Python.
class ModuleSet {
 public:
  void add_python(uint32_t file) { python_[file / 64] |= uint64_t{1} << file % 64; }
  bool has_python(uint32_t file) const { return (python_[file / 64] >> file % 64 & 1) != 0; }
  void add(uint32_t index) {
    if (index < modules::kMaxModules) bits_[index / 64] |= uint64_t{1} << index % 64;
  }
  bool has(uint32_t index) const {
    return index < modules::kMaxModules && (bits_[index / 64] >> index % 64 & 1) != 0;
  }

 private:
  uint64_t bits_[modules::kMaxModules / 64] = {};
  static_assert(unwind::kMostPythonFiles % 64 == 63);
  uint64_t python_[(unwind::kMostPythonFiles + 1) / 64] = {};
};

// Cache of lines of frames: most frames are in a report many times. Without memory nothing is
// cached. The lines are one behind the other, so that a short report touches few pages.
class FrameLines {
 public:
  // As write_frame().
  void write(Writer& out, uintptr_t address, modules::StackEpoch& epoch, ModuleSet& modules);

 private:
  static constexpr unsigned kBits = 14;  // of the number of places
  static constexpr unsigned kGroup = 8;  // places in which a line may be
  static constexpr size_t kMostText = 232;
  static constexpr uint32_t kRoom = 1u << 21;  // bytes for lines
  struct Line {
    uintptr_t address;
    const modules::Module* module;  // nullptr: a function of Python
    uint32_t retired;
    uint32_t size;
    char text[];
  };
  // Where a line is in `room`, below a tag from its address's hash, so that few lines are compared.
  class Place {
   public:
    Place() = default;
    Place(uint64_t hash, uint32_t where)
        : bits_(static_cast<uint32_t>(hash) << kWhereBits | (where / alignof(Line) + 1)) {}
    bool is_free() const { return bits_ == 0; }
    bool may_be(uint64_t hash) const {
      return bits_ >> kWhereBits == static_cast<uint32_t>(hash) << kWhereBits >> kWhereBits;
    }
    uint32_t where() const { return ((bits_ & kMostWhere) - 1) * alignof(Line); }

   private:
    static constexpr unsigned kWhereBits = 19;
    static constexpr uint32_t kMostWhere = (1u << kWhereBits) - 1;
    static_assert(kRoom / alignof(Line) < kMostWhere);
    uint32_t bits_;
  };
  struct Memory {
    Place places[1u << kBits];  // in groups by hash of the address, filled from the front
    uint32_t used;              // bytes of `room`
    alignas(Line) char room[kRoom];
  };

  // Whether the line is that of this frame.
  static bool holds(const Line& line, uintptr_t address, uint32_t retired);
  void make(Writer& out, uintptr_t address, modules::StackEpoch& epoch, ModuleSet& modules,
            uint64_t hash, Place* place);

  Scratch<Memory> memory_{1};
};

// Writes "\t(module+0x1234)", or the line of a Python function. `epoch`: of the stack that has the
// address. `guessed`: adds format::kGuessedMark. Returns the loaded object, or nullptr.
const modules::Module* write_frame(Writer& out, uintptr_t address, modules::StackEpoch& epoch,
                                   ModuleSet& modules, bool guessed = false);
// Writes all frames of a stack, and "\t..." when there were more.
void write_frames(Writer& out, const ledger::StackRecord& stack, ModuleSet& modules);
// The same for the stack at `index`; what it shares with others may stand as "\t^ tail=ID".
void write_frames(Writer& out, uint32_t index, ModuleSet& modules, FrameLines& lines, Tails& tails);
// Writes "# tail: ID" and the frames of each tail that a stack of write_frames() ended with.
void write_tails(Writer& out, ModuleSet& modules, FrameLines& lines, Tails& tails);
// Writes "# module: PATH build-id=HEX base=0xHEX" for each loaded object, and "# module: PATH
// base=0x0 language=python" for each source file.
void write_modules(Writer& out, const ModuleSet& modules);

// Writes the current call stack from `caller` on, at most format::kMaxDepth frames, for the
// program's own diagnostics: the frames, then the modules that they name. Returns the number of
// frames, or -1 when a write fails.
int write_backtrace(const unwind::Registers& caller, int fd);

}  // namespace mtrace::report
