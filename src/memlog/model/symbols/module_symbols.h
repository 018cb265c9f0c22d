// The names of one module, from its ELF file, its separate debug file, its symbols and DWARF.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"

struct Dwfl_Module;

namespace mtrace::symbols {

// The known facts about one function at one address.

struct SourceFrame {
  profile::Name function;  // demangled; empty: unknown
  profile::Name source;    // FILE:LINE, file without directories; empty: unknown
  profile::Name path;      // of the file, as compiled; empty: unknown
};

// Innermost first; each frame but the last is inlined into the next. Empty: nothing known.
using SourceFrames = std::vector<SourceFrame>;

// Where to search for files.
struct SearchPath {
  std::string sysroot;               // put before the modules' paths; empty: none
  std::vector<std::string> symbols;  // directories with separate debug files, or packed ones
};

// The result of a search for a module.
enum class Finding : uint8_t {
  kFound = 0,
  kMissing = 1,  // no file, or no readable one
  kChanged = 2,  // the file has another build-id, and no file with the right one was found
};

class ModuleSymbols {
 public:
  // Opens the module at `path` ("[vdso]": that of this process), with the raw `build_id` if it is
  // not empty. If the file is gone or has changed, a debug file with that build-id serves. Never
  // throws because of a file's content.
  ModuleSymbols(const SearchPath& where, const std::string& path, const std::string& build_id);
  // The same of a module that a process has loaded: takes over the descriptor of its file.
  ModuleSymbols(const SearchPath& where, const std::string& path, int descriptor);
  ~ModuleSymbols();
  ModuleSymbols(const ModuleSymbols&) = delete;
  ModuleSymbols& operator=(const ModuleSymbols&) = delete;

  Finding finding() const;
  // Returns the frames at an ELF address; empty: nothing known.
  SourceFrames frames(uint64_t address);
  // Returns the module with its symbols and debugging information, at bias 0; nullptr: it was not
  // found. Valid as long as this.
  Dwfl_Module* module() const;

  // A file that the names come from: the module's, its separate debug file, and what several of
  // these share. `name`: below a directory of SearchPath::symbols, where it gives the same names.
  struct File {
    std::string name;
    std::string_view content;  // valid as long as the module
    bool whole = false;        // a debuglink has its checksum
  };
  std::vector<File> files() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Copies the files that give the module its names (see ModuleSymbols) to where they have effect as
// a directory of SearchPath::symbols. `binaries`: whole, else without code and data. Returns false
// when there are none, or no room. Works in a child process.
bool copy_symbols(const SearchPath& where, const std::string& path, const std::string& build_id,
                  bool binaries, const std::string& directory);

}  // namespace mtrace::symbols
