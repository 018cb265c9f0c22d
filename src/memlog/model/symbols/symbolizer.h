// Fills names into memlogs.
#pragma once

#include "model/profile/model.h"
#include "model/symbols/module_symbols.h"
#include "util/prelude.h"

namespace mtrace::symbols {

// Caches what it finds, so that many reports of one program cost little more than one.
class Symbolizer {
 public:
  explicit Symbolizer(SearchPath where);

  // From now on modules are looked up below this directory. It must mean the same files as that
  // before: what is known stays.
  void look_below(const std::string& sysroot) { where_.sysroot = sysroot; }

  // Fills in the function, line and inlined frames of each frame. A frame stays as it is when its
  // module is gone, unreadable or of another build; a note tells of another build. Names from an
  // earlier pass are replaced only by better ones. Sets `# resolved:`. A note names each allocator
  // that is linked into a module (elf_file.h).
  void resolve(profile::Memlog& memlog);

  // Returns whether resolve() may add something: also to a report without entries, whose program
  // may have an allocator of its own.
  static bool is_needed(const profile::Memlog& memlog);

  // Announces a memlog for a later resolve(). Its addresses are looked up when their module is next
  // opened, for any memlog: opening a module costs far more than a lookup.
  void expect(const profile::Memlog& memlog);

 private:
  struct KnownModule {
    Finding finding = Finding::kMissing;
    std::string allocator;  // a function of one that is linked into it; empty: none is known
    absl::flat_hash_map<uint64_t, SourceFrames> frames;  // by ELF address
    absl::flat_hash_set<uint64_t> expected;
  };

  KnownModule& look_up(const profile::Memlog& memlog, const profile::Module& module,
                       const std::vector<uint64_t>& offsets);

  void note_allocators(profile::Memlog& memlog, const std::vector<KnownModule*>& known);

  SearchPath where_;
  absl::flat_hash_map<std::string, std::string> programs_;  // by path: KnownModule::allocator
  absl::flat_hash_map<std::string, KnownModule> known_;     // by path and build-id
};

// Identifies this machine, to tell whether a memlog was taken here since the last boot.

std::string this_boot_id();  // empty: unknown
std::string this_host();

// Returns whether the report was taken on this machine since its last boot.
bool taken_here(const profile::Header& header);

// Returns what brings names for the module at `path`, in words that end a sentence: the command
// that installs the package with its debugging information (Debian and its kin), and the debuginfod
// server of this distribution. For a file that belongs to no package: that it be built with -g.
// `root`: below which files are looked for, "" or without a slash at its end.
std::string names_from(const std::string& path, const std::string& root = "");

// Finds source files on this machine.
struct SourceFile {
  std::string path;  // empty: not found
  std::string why;   // why not, as a part of a sentence: "no file of this name below src"
};

class SourceFiles {
 public:
  // `directories`: where the user says that sources are.
  explicit SourceFiles(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  // Finds the file that was compiled as `compiled` (empty: not known), whose name is `name`:
  //   1. in the user's directories, under ever shorter ends of `compiled`, down to the name;
  //   2. at `compiled` itself;
  //   3. in the working directory, under the ends of `compiled` that have a directory.
  // If `compiled` is not known, the only file of this name below the user's directories and the
  // working directory. Hidden directories are not searched. Remembers what it found.
  const SourceFile& find(const std::string& compiled, const std::string& name);

 private:
  SourceFile locate(const std::string& compiled) const;
  SourceFile search(const std::string& name);
  void list_names();

  std::vector<std::string> directories_;
  std::map<std::pair<std::string, std::string>, SourceFile> known_;
  bool listed_ = false;
  bool all_listed_ = true;  // false: there were too many files to list
  std::multimap<std::string, std::string> by_name_;
};

// Finds out under which path the source file of a frame was compiled. Memlogs hold file names
// without directories; the modules' debugging information has the rest.
class SourcePaths {
 public:
  explicit SourcePaths(SearchPath where) : where_(std::move(where)) {}

  // Reads the debugging information for the frames of `stacks`, whose modules are `modules`. Opens
  // each module once a call, in a child process. Skips frames that it knows.
  void learn(const std::vector<profile::Module>& modules,
             const std::vector<const profile::Frames*>& stacks);

  // Returns the path as the compiler was given it, absolute wherever the debugging information
  // tells the directory of the compilation. Empty: the frame has no source line, or its module is
  // not on this machine in the same build, or has no debugging information. `at`: the frame's place
  // in its stack.
  std::string find(const std::vector<profile::Module>& modules, const profile::Frames& stack,
                   size_t at) const;

 private:
  // The paths of the frames at an ELF address: innermost first, the inlined ones before their
  // caller.
  using Paths = std::vector<std::string>;

  SearchPath where_;
  absl::flat_hash_map<std::pair<std::string, uint64_t>, Paths> known_;  // by module and address
};

// Splits "FILE:LINE". The line is 0 if there is none.
std::pair<std::string, uint64_t> split_source(const std::string& source);

}  // namespace mtrace::symbols
