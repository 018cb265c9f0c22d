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

}  // namespace mtrace::symbols
