// Fills names into the addresses of a text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/profile/model.h"
#include "model/symbols/address_map.h"
#include "model/symbols/symbolizer.h"
#include "model/symbols/text_place.h"

namespace mtrace::symbols {

class TextDecoder {
 public:
  explicit TextDecoder(SearchPath where)
      : where_(where), map_(where), resolver_(std::move(where)) {}

  // Returns `text` with names for the places that find_places() finds. `text` must be whole lines.
  // A frame gets its names as in a memlog, with inlined functions in separate lines before it. Any
  // other line gets them at its end, place by place. All else is unchanged.
  //
  // A `# module:` line tells the build of a file. It applies to the lines before it, back to the
  // previous one for the same path; the last one also to the lines after it. Lines of
  // /proc/PID/maps and `# module:` lines tell where a bare address lies (address_map.h).
  std::string decode(std::string_view text);

  // Why names are missing: each reason once, in order.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // A frame, preceded by those inlined into it.
  using Names = std::vector<profile::Frame>;

  struct Described {
    size_t line;
    profile::Module module;
  };
  struct Found {
    size_t line;
    TextPlace place;
    const Described* described = nullptr;
    std::optional<uint64_t> offset;  // ELF address, inside the call instruction
    const Names* names = nullptr;    // none: nothing is known
  };

  void describe(size_t line, std::string_view text);
  const Described* description_of(const TextPlace& place, size_t line) const;
  // Completes the module of a place, by which its description is found.
  void find_module(Found& item);
  void find_offsets(std::vector<Found>& found);
  // Looks up the names that the pointers in `found` refer to.
  std::vector<Names> find_names(std::vector<Found>& found);

  SearchPath where_;
  AddressMap map_;
  Symbolizer resolver_;
  // By path and generation, in text order.
  std::map<std::pair<std::string, uint32_t>, std::vector<Described>> described_;
  std::map<std::string, std::string> full_paths_;  // of relative ones in this text
  std::vector<std::string> notes_;
};

}  // namespace mtrace::symbols
