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

#include <absl/container/flat_hash_map.h>
#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile/model.h"

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

// The built-in table of library code, in the format of view/analyze/library_code.h.

extern const char kAllocators[];
extern const char kWrappers[];
extern const char kInternals[];
extern const char kStartUp[];
extern const char kSystem[];

}  // namespace mtrace::analyze
