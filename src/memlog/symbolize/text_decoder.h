// Gives the places in a text their names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/model.h"
#include "symbolize/symbolizer.h"
#include "symbolize/text_place.h"

namespace mtrace::symbolize {

class TextDecoder {
 public:
  explicit TextDecoder(SearchPath where) : where_(where), resolver_(std::move(where)) {}

  // `text`, whole lines, with the names of what find_place() finds. A frame gets them as a memlog
  // has them, inlined functions in lines of their own before it; another line at its end. A
  // `# module:` line holds for the lines before it, up to the one with the same path before, and
  // for those after the last one: it tells which build the file must be of. All else stays as it
  // is.
  std::string decode(std::string_view text);

  // Why names are missing, each once, in order.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // One frame, after those inlined into it.
  using Names = std::vector<profile::Frame>;

  struct Described {
    size_t line;
    profile::Module module;
  };
  struct Found {
    size_t line;
    TextPlace place;
    const Described* described = nullptr;
    std::optional<uint64_t> offset;  // ELF address, within the call
    const Names* names = nullptr;    // none: nothing is known
  };

  void describe(size_t line, std::string_view text);
  const Described* description_of(const TextPlace& place, size_t line) const;
  void find_offsets(std::vector<Found>& found);
  // The names that those in `found` point to.
  std::vector<Names> find_names(std::vector<Found>& found);

  SearchPath where_;
  Symbolizer resolver_;
  // By path and generation, in the order of the text.
  std::map<std::pair<std::string, uint32_t>, std::vector<Described>> described_;
  std::vector<std::string> notes_;
};

}  // namespace mtrace::symbolize
