// Writes a memlog as text: the inverse of the reader.
#pragma once

#include "model/profile/model.h"
#include "util/compression.h"
#include "util/prelude.h"

namespace mtrace::profile {

// Returns the text of `memlog`: meta lines, entries and `# end`. Reading it gives an equal model.
std::string write(const Memlog& memlog);

// Returns the place of a frame: "(/usr/lib/libc.so.6#2+0x1f3)", "(0x7f..)" or "(inlined)".
std::string place(const Memlog& memlog, const Frame& frame);

// Returns the value of the module's `# module:` line.
std::string module_text(const Module& module);

// Returns the part of a frame line before the place: "function\tsource\t", "function\t" or "".
std::string frame_names(const Frame& frame);

// Returns "no", "partly" or "yes".
const char* resolved_text(Resolved resolved);

// Sets the `# resolved:` line, at its place after the entries.
void set_resolved(Memlog& memlog, Resolved resolved);
// Adds a `# note:` line unless there is an equal one.
void add_note(Memlog& memlog, const std::string& text);

// Makes a memlog of something other than a report: of a ledger, of an event log.
class Builder {
 public:
  using Rests = StackIds::Rests;

  // `name`: of the source, for messages.
  explicit Builder(std::string name) { memlog_.name = std::move(name); }

  // Adds a meta line, in the order of the file.
  template <typename... Args>
  void meta(const char* key, fmt::format_string<Args...> value, Args&&... args) {
    add_meta({key, fmt::format(value, std::forward<Args>(args)...)});
  }
  // Those that frames of entries name.
  ModuleTable& modules() { return modules_; }
  // Adds the meta lines about modules.
  void describe_modules();

  // Tells the rests of a stack that may be shared: of each before the first entry is added.
  void expect(const Rests& rests);
  // Adds the next entry; its `fields` follow from its other members and from `further`: fields
  // without a member, each with a tab before it. What its stack shares with others, beyond a guess
  // and kUntailedFrames, becomes a tail. `rests`: of its stack; empty: it has no tail.
  void add(Entry entry, Frames::List frames, const Rests& rests, const std::string& further = "");

  // Checks all as a reader does. Throws FormatError.
  Memlog finish();

 private:
  struct Rest {
    uint64_t next;  // id of the one that begins further in, where it was first met; 0: none
    bool shared = false;
    Frames::Rest frames = nullptr;
  };
  void add_meta(Field line);
  size_t shared_rest(const Rests& rests, size_t most) const;
  Frames::Rest take_rest(Frames::List& frames, const Rests& rests, size_t most);

  Memlog memlog_;
  bool after_ = false;  // the entries are over
  ModuleTable modules_;
  absl::flat_hash_map<uint64_t, Rest> rests_;
};

// Writes reports to files, compressed or not.

// Returns whether a report of this name is to be compressed: it ends in .zst.
bool is_compressed_name(std::string_view path);

// Replaces the file at `path` atomically by this report (see Replacement). Throws FileError.
void write_report(const std::string& path, std::string_view text, bool compressed);

// Replaces the report at `path` by `path`.zst, this report compressed. There is one file at any
// time; a process that is killed meanwhile may leave the compressed report at `path`. If there is a
// `path`.zst already, it stays, and `path` gets the report uncompressed. Returns the name of the
// file. Throws FileError, and std::runtime_error unless `path` is a regular file.
std::string compress_report(const std::string& path, std::string_view text);

// What memlog run compresses unless told otherwise: a text of more bytes.
inline constexpr size_t kLargeReport = 1 << 20;

// Replaces the report `before` by the text `after`, if that is another. It stays compressed;
// `compress`: it becomes so, with a new name (compress_report()). Throws what that throws, and
// std::runtime_error when the new name is taken.
void replace_report(const util::Text& before, std::string_view after, bool compress);

}  // namespace mtrace::profile
