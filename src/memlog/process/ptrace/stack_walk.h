// Walks the stack of a stopped thread by call-frame information. All is read from the memory of the
// process, so its files and namespaces do not matter.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cfi/frame_registers.h"
#include "process/inspect/target_memory.h"
#include "process/inspect/target_objects.h"

namespace mtrace::process {

class StackWalk : cfi::FrameMemory {
 public:
  // Both must outlive this. Code and its tables may not change meanwhile.
  StackWalk(const TargetMemory& memory, const std::vector<Object>& objects)
      : FrameMemory(read_stack), memory_(memory), objects_(objects), stacks_(memory) {}

  // Begins with the frame that the registers belong to.
  void begin(const user_regs_struct& registers);
  // Returns the address of the frame's instruction: the one that comes next, or the call.
  uint64_t address() const { return frame_.registers[cfi::kPc] - (exact_ ? 0 : 1); }
  // Returns the object with the frame's code; nullptr: none.
  const Object* object() const;
  // Goes on to the caller. `object` is object(). Returns false when there is no caller, or it is
  // not known.
  bool step(const Object* object);
  // Call it when threads have run.
  void forget_stacks() { stacks_.forget(); }

 private:
  // A copy of what an object says of its frames; addresses in it are `distance` above those of the
  // process. Empty: it says nothing, or what cannot be read.
  struct Tables {
    std::string bytes;
    uint64_t distance = 0;
    cfi::Bounds bounds;
  };

  static bool read_stack(FrameMemory* self, uintptr_t address, unsigned size, uintptr_t* value);
  const Tables& tables_of(const Object& object);
  bool step_by_frame_pointer();

  const TargetMemory& memory_;
  const std::vector<Object>& objects_;
  PageCache stacks_;
  std::unordered_map<const Object*, Tables> tables_;
  cfi::FrameRegisters frame_ = {};
  bool exact_ = true;  // the frame was interrupted, and did not call
};

}  // namespace mtrace::process
