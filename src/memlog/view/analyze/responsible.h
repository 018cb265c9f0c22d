// Who is responsible for a stack: the innermost frame of the program's own code. Allocation
// functions and the internals of libraries are below it, callers above.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/library_code.h"

namespace mtrace::analyze {

// A line of a folded stack.
struct FoldedFrame {
  size_t frame = 0;     // index in the stack; of several the one that names them
  size_t frames = 1;    // number of frames that the line stands for; 0: those behind the depth
  bool inside = false;  // called by the responsible frame, on the way to the allocation

  bool missing() const { return frames == 0; }
};

// Returns what leads a stack that was cut at `depth` frames before any own code.
std::string cut_text(size_t depth);

// Not for several threads.
class Responsible {
 public:
  Responsible() : Responsible(LibraryCode()) {}
  explicit Responsible(LibraryCode code) : code_(std::move(code)) {}

  // Returns the index of the responsible frame; 0 for a stack without frames. Of the frames that
  // are neither an allocator's nor a library's internals nor start-up, the innermost that has a
  // name and does not wrap an allocator; an own one comes before one of the system's libraries,
  // those before wrappers, and those before frames without a name. If there is none, of the
  // innermost run of library frames the one that was called first; else the innermost.
  size_t of(const profile::Frames& frames, const std::vector<profile::Module>& modules) const;

  // Returns whether a stack that was cut at `depth` frames (0: whole) has nothing but library
  // internals and allocators: the frame that is responsible for it is not known.
  bool missing(const profile::Frames& frames, const std::vector<profile::Module>& modules,
               size_t depth) const;

  // Returns the lines of a stack: the responsible frame; in one line what it called, without
  // allocators; then its callers, each run of frames that are not own in one line. Start-up frames
  // at the end of the stack are left out. A line names the frame of its run that own code called,
  // or in the outermost run the one that called it. Where the responsible frame is missing(), the
  // first line says so, and the frames are what it called.
  std::vector<FoldedFrame> folded(const profile::Frames& frames,
                                  const std::vector<profile::Module>& modules,
                                  size_t depth = 0) const;

  // folded() for pictures: code of the system's libraries stands as own code does, what the first
  // line called is left out, and where a function calls itself, also by way of others, the frames
  // from its first call to its last are one line.
  std::vector<FoldedFrame> drawn(const profile::Frames& frames,
                                 const std::vector<profile::Module>& modules,
                                 size_t depth = 0) const;

  // Returns whether a frame tells a reader who called whom: it has a name, and is no library's
  // internals.
  bool tells(const profile::Frames& frames, size_t at,
             const std::vector<profile::Module>& modules) const {
    return known(frames, at, modules).rank < kNameless;
  }

  // Returns whether the frame is own code.
  bool own(const profile::Frames& frames, size_t at,
           const std::vector<profile::Module>& modules) const {
    return code_.of(frames, at, modules) == Code::kOwn;
  }

 private:
  static constexpr unsigned kNameless = 4;  // and 5: ranks of frames without a name
  struct Known {
    Code code;
    unsigned rank;  // of frames that may be responsible: the lowest is
  };
  Known known(const profile::Frames& frames, size_t at,
              const std::vector<profile::Module>& modules) const;
  std::vector<Known> all_known(const profile::Frames& frames,
                               const std::vector<profile::Module>& modules) const;
  static size_t leader(const std::vector<Known>& known);
  static std::vector<FoldedFrame> lines_of(const profile::Frames& frames,
                                           const std::vector<Known>& all, bool unknown);

  LibraryCode code_;
};

using ResponsiblePointer = std::shared_ptr<const Responsible>;

}  // namespace mtrace::analyze
