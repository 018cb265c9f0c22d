// Who is responsible for a stack: the innermost frame of the program's own code. Allocation
// functions and the internals of libraries are below it, callers above.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "analyze/library_code.h"
#include "profile/model.h"

namespace mtrace::analyze {

// A line of a folded stack.
struct FoldedFrame {
  size_t frame = 0;     // index in the stack; of several the one that names them
  size_t frames = 1;    // number of frames that the line stands for
  bool inside = false;  // called by the responsible frame, on the way to the allocation
};

// Not for several threads.
class Responsible {
 public:
  Responsible() : Responsible(LibraryCode()) {}
  explicit Responsible(LibraryCode code) : code_(std::move(code)) {}

  // Returns the index of the responsible frame; 0 for a stack without frames:
  //   1. the innermost frame of own code;
  //   2. if there is none, the innermost that is neither an allocator's nor a library's internals
  //      nor start-up;
  //   3. if there is none, of the innermost run of library frames the one that was called first;
  //   4. else the innermost.
  size_t of(const std::vector<profile::Frame>& frames,
            const std::vector<profile::Module>& modules) const;

  // Returns the lines of a stack: the responsible frame; in one line what it called, without
  // allocators; then its callers, each run of frames that are not own in one line. Start-up frames
  // at the end of the stack are left out. A line names the frame of its run that own code called,
  // or in the outermost run the one that called it.
  std::vector<FoldedFrame> folded(const std::vector<profile::Frame>& frames,
                                  const std::vector<profile::Module>& modules) const;

  // Returns whether the frame is own code.
  bool own(const std::vector<profile::Frame>& frames, size_t at,
           const std::vector<profile::Module>& modules) const {
    return code_.of(frames, at, modules) == Code::kOwn;
  }

 private:
  LibraryCode code_;
};

using ResponsiblePointer = std::shared_ptr<const Responsible>;

}  // namespace mtrace::analyze
