// The names of one module: its ELF file, its separate debug file, its symbols and DWARF.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "symbolize/source_frame.h"

namespace mtrace::symbolize {

// Where files are looked for.
struct SearchPath {
  std::string sysroot;               // stands before the modules' paths; empty: none
  std::vector<std::string> symbols;  // directories with separate debug files
};

// What was found of a module.
enum class Finding : uint8_t {
  kFound = 0,
  kMissing = 1,  // no file, or none that can be read
  kChanged = 2,  // the file has another build-id, and none with the right one was found
};

class ModuleSymbols {
 public:
  // Opens the module with `path` (or "[vdso]": this process's own) and, when the report knew one,
  // with the raw `build_id`. If the file is gone or has changed, a debug file with that build-id
  // does. Never throws for what it finds in files.
  ModuleSymbols(const SearchPath& where, const std::string& path, const std::string& build_id);
  ~ModuleSymbols();
  ModuleSymbols(const ModuleSymbols&) = delete;
  ModuleSymbols& operator=(const ModuleSymbols&) = delete;

  Finding finding() const;
  // What stands at an ELF address; empty: nothing known.
  SourceFrames frames(uint64_t address);
  // The ELF addresses of the functions with this mangled name, the likeliest first.
  std::vector<uint64_t> addresses(const std::string& symbol);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mtrace::symbolize
