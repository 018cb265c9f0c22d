// Which module an address of a process lies in, as a text tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile/model.h"
#include "model/symbols/loaded_file.h"
#include "model/symbols/module_symbols.h"

namespace mtrace::symbols {

// Collects lines of /proc/PID/maps and `# module:` lines with a base. Lines without a place between
// them are one description of a process. Not for several threads.
class AddressMap {
 public:
  struct Location {
    const profile::Module* module;  // valid until the next add
    uint64_t offset;                // ELF address
  };

  explicit AddressMap(SearchPath where) : where_(std::move(where)) {}

  // Takes a line of /proc/PID/maps, which may stand behind a log's prefix. Ignores other text.
  void add_mapping(size_t line, std::string_view text);
  // Takes a module whose base is known.
  void add_module(size_t line, const profile::Module& module);
  // A line with a place: what follows describes the process anew.
  void end_description() { open_ = false; }
  // Of the text before, only the last description holds for the lines that follow.
  void begin_text();

  // Returns where `address`, which `line` holds, lies: by the next description, else by the one
  // before the line. Only code counts. Reads the module's file.
  std::optional<Location> find(uint64_t address, size_t line);
  // Returns the known path that ends with the relative `path`; empty: none or several.
  std::string full_path(std::string_view path) const;

 private:
  struct Part {
    profile::Module module;
    Extent mapping;            // of a line of maps; empty: a module line
    uint64_t map_offset = 0;   // in the file
    bool read = false;         // the file; it tells the base of what is mapped, and this:
    std::vector<Extent> code;  // empty: there is no such file
  };
  struct Description {
    size_t line;  // its last
    std::vector<Part> parts;
  };

  Description& description(size_t line);
  std::optional<Location> find_in(Description& description, uint64_t address);
  void read_file(Part& part);

  SearchPath where_;
  std::vector<Description> all_;
  bool open_ = false;  // the last one may go on
};

}  // namespace mtrace::symbols
