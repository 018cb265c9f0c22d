// Fills names into the addresses of a text that is no memlog: logs, stacks that programs print.
#pragma once

#include "model/profile/model.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/symbolizer.h"
#include "util/prelude.h"

namespace mtrace::symbols {

// An address in a line of text.
struct TextPlace {
  bool alone = false;  // "(MODULE+0xHEX)" and nothing else: a frame of a memlog
  std::string module;  // path, maybe relative; empty: not told
  uint32_t generation = 1;
  std::optional<uint64_t> offset;  // ELF address inside the call instruction
  uint64_t address = 0;            // return address in the process; 0: not told
};

// Returns the places in a line (without its newline), in their order. Of the first of these forms
// that the line has: a frame alone; MODULE(+0xHEX) [0xADDRESS] or MODULE[0xADDRESS], as glibc's
// backtrace_symbols() writes functions that are not exported; each (MODULE+0xHEX), as in
// AddressSanitizer's stacks; each [0xADDRESS], and 0xADDRESS as a word, as gdb writes it. Returns
// none for a frame of a memlog that has its name already.
std::vector<TextPlace> find_places(std::string_view line);

class TextDecoder {
 public:
  explicit TextDecoder(SearchPath where) : where_(where), resolver_(std::move(where)) {}

  // Returns `text`, which must be whole lines, with names for its places. A frame alone gets its
  // names as in a memlog, with inlined functions in separate lines before it. Any other line gets
  // them at its end, place by place. All else is unchanged.
  //
  // Lines of /proc/PID/maps and `# module:` lines tell where addresses lie, and of which build a
  // module is. Those without a place between them are one description of a process; it applies to
  // the lines before it, back to the previous one, and else to the lines after it.
  std::string decode(std::string_view text);

  // Why names are missing: each reason once, in order.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // A frame, preceded by those inlined into it.
  using Names = std::vector<profile::Frame>;

  // A module of a process, by a line of the text.
  struct Part {
    profile::Module module;
    bool described = false;    // by a `# module:` line, which tells its build
    bool has_base = false;     // that it tells
    Extent mapping;            // of a line of maps
    uint64_t map_offset = 0;   // in the file
    bool read = false;         // the file; it tells the base of what is mapped, and this:
    std::vector<Extent> code;  // empty: there is no such file
  };
  struct Description {
    size_t line = 0;  // its last
    std::vector<Part> parts;
  };
  struct Found {
    size_t line;
    TextPlace place;
    const profile::Module* described = nullptr;  // by a `# module:` line
    const Names* names = nullptr;                // none: nothing is known
  };

  static std::optional<Part> read_part(std::string_view line);
  void find_module(Found& item);
  bool locate(Description& description, Found& item);
  std::vector<Names> find_names(std::vector<Found>& found);

  SearchPath where_;
  Symbolizer resolver_;
  std::vector<Description> descriptions_;
  std::vector<std::string> notes_;
};

}  // namespace mtrace::symbols
