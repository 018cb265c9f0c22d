// Tells the code of libraries from a program's own. A table says what is a library's: text, one
// pattern a line.
//
//   function:REGEX   the name that is called, without return type, template arguments and
//                    parameters (called_name())
//   source:REGEX     the source file, with or without its line
//   module:REGEX     the path of the module; an inlined function is in that of its caller
//   any:REGEX        any of them
//   # text           a comment; empty lines are, too
#pragma once

#include <re2/re2.h>

#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::analyze {

enum class Code : uint8_t {
  kOwn,        // the program's, or of a library that is no part of the system
  kSystem,     // in a library of the system, or at an unknown place
  kLibrary,    // the internals of a library
  kStartUp,    // what runs before main or before the function of a thread
  kAllocator,  // malloc and kin
};

// A set of patterns for frames.
class FramePatterns {
 public:
  // Adds the lines of `text`. Throws util::FormatError with `name` and the line.
  void add(const std::string& name, std::string_view text);
  // Adds a pattern: a line of the table, or a REGEX, which is for functions. Throws PatternError.
  void add_pattern(std::string_view pattern);
  bool empty() const { return functions_.empty() && sources_.empty() && modules_.empty(); }

  bool has_function(const std::string& called) const { return functions_.match(called); }
  bool has_source(const std::string& source) const;
  bool has_module(const std::string& path) const { return modules_.match(path); }

 private:
  // One expression that matches what any of several does.
  class Any {
   public:
    void add(std::string_view expression);
    bool match(const std::string& text) const;
    bool empty() const { return all_.empty(); }

   private:
    std::string all_;
    mutable std::unique_ptr<re2::RE2> compiled_;
  };

  Any functions_;
  Any sources_;
  Any modules_;
};

// Not for several threads: it remembers what it has seen.
class LibraryCode {
 public:
  // The built-in table.
  LibraryCode();

  // What a user says: `own` comes before `library`, and both before the built-in table.
  FramePatterns& own() { return own_; }
  FramePatterns& library() { return library_; }

  // Returns what frame `at` of a stack is.
  Code of(const profile::Frames& frames, size_t at,
          const std::vector<profile::Module>& modules) const;
  // Returns whether a function is known by its name to allocate for its caller, as xmalloc does.
  bool wraps(const std::string& function) const { return of_function(function).wraps; }

 private:
  // What a function's name or a module's path tells. `own` and `library`: a user says so.
  struct Known {
    bool own = false;
    bool library = false;
    bool wraps = false;
    Code code = Code::kOwn;
  };
  const Known& of_function(const std::string& function) const;
  const Known& of_module(const std::string& path) const;

  FramePatterns own_;
  FramePatterns library_;
  FramePatterns allocators_;
  FramePatterns wrappers_;
  FramePatterns internals_;
  FramePatterns start_up_;
  FramePatterns system_;
  mutable absl::flat_hash_map<std::string, Known> functions_;
  mutable absl::flat_hash_map<std::string, Known> modules_;
};

// Returns the built-in table as text, with comments.
std::string library_table();

// The built-in table of library code, in the format above.

extern const char kAllocators[];
extern const char kWrappers[];
extern const char kInternals[];
extern const char kStartUp[];
extern const char kSystem[];

// Who is responsible for a stack: the innermost frame of the program's own code. Allocation
// functions and the internals of libraries are below it, callers above.

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
