// Names that tell nothing, for those in data that is to be shown to others. A name is a keyed hash
// of what it stands for: with the same key the same in all files.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/profile/model.h"
#include "util/keyed_hash.h"

namespace mtrace::profile {

class Pseudonyms {
 public:
  explicit Pseudonyms(const util::HashKey& key) : key_(key) {}

  // Keeps modules and source files whose path matches. Throws std::runtime_error.
  void keep(const std::string& regex);
  // Returns whether this is a library of the distribution, or one that is to be kept.
  bool keeps(std::string_view path) const;

  // Returns `letter`, "_" and 12 hex digits; empty: `text` is.
  std::string of(char letter, std::string_view text);
  // Returns a path with a name for each part, and the suffix of a source file or library; the same
  // path if it is kept.
  std::string path(std::string_view path);
  // The same of a name without directories; its suffix stays.
  std::string file(std::string_view name);
  // Of FILE:LINE.
  std::string source(std::string_view source);
  // Returns the name of a function that is in no kept module. Functions of the C++ library keep
  // theirs, with names for what they are instantiated with.
  std::string function(std::string_view name);
  // Returns the arguments of a command, escaped as in memlogs.
  std::string command(std::string_view command);
  // Returns the value of the line `library` of a memlog.
  std::string library(std::string_view value);
  // Returns a note. What it is about stays, where readers know that.
  std::string note(std::string_view note);
  std::string label(std::string_view label);
  // Of entries: kinds that the library makes stay.
  std::string kind(std::string_view kind);
  std::string call(std::string_view call);
  std::string trigger(std::string_view trigger);
  // What a mapping is called.
  std::string region(std::string_view name);
  std::string boot_id(std::string_view id);
  // Replaces path and build-id unless the module is kept. Returns whether it is.
  bool module(Module& module);
  uint64_t stack(uint64_t id) const;

  void remember(std::string name, std::string_view original) {
    made_.try_emplace(std::move(name), original);
  }
  // All names that were made, and what they stand for.
  const std::map<std::string, std::string>& made() const { return made_; }

 private:
  bool is_known_library(std::string_view name) const;
  std::string std_name(std::string_view name);

  util::HashKey key_;
  std::vector<std::unique_ptr<re2::RE2>> kept_;
  std::map<std::string, std::string> made_;
};

// Replaces all texts of a memlog that may tell of the program, its user and its machine. Leaves out
// lines and fields that this version does not know. Numbers stay.
void anonymise(Memlog& memlog, Pseudonyms& names);

}  // namespace mtrace::profile
