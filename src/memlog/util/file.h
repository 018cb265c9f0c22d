// Files: whole ones read, others replaced atomically; descriptors and names.
#pragma once

#include <unistd.h>

#include "format/memlog.h"
#include "util/prelude.h"

namespace mtrace::util {

// A file descriptor. The destructor closes it, unless it is a standard stream.

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ > 2) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }

 private:
  int number_;
};

// Reads whole files, and replaces files atomically.

// Returns the content of the file at `path`; "-" is the standard input. Throws FileError, also for
// a directory.
std::string read_file(const std::string& path);

// Writes all of `content` to an open file. Returns false with errno.
bool write_all(int descriptor, std::string_view content);

// Writes all of `content` at a place of an open file. Returns false with errno.
bool write_at(int descriptor, uint64_t offset, std::string_view content);

// Copies bytes at a place of an open file to `to`. Returns how many there were: fewer than `size`
// at the end of the file, or with errno.
size_t read_at(int descriptor, uint64_t offset, void* to, size_t size);

// Prefix of the names of temporary files that will replace others.
inline constexpr char kTemporaryPrefix[] = ".memlog-";

// Replaces a file atomically: a reader sees the old content or the new, never a mixture.
// Writes to an unnamed file in the same directory (.memlog-XXXXXX where the file system has no
// unnamed files). finish() then puts it in the place of `path`, following symbolic links. Keeps the
// mode of an existing file; a new file gets 0600. A device, a pipe or any other non-regular file is
// written to, never replaced.
// All functions throw FileError. After an error, or without finish(), a regular file at `path` is
// unchanged.
class Replacement {
 public:
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::string_view content);
  void finish();

 private:
  void give_name();
  void remove_temporary();

  std::string path_;
  std::string target_;     // `path` with its symbolic links followed
  std::string directory_;  // of the new file; empty: write to `path` itself
  std::string temporary_;  // name of the new file; empty: it has none
  Descriptor file_;
};

void replace_file(const std::string& path, std::string_view content);

// Lets a signal wait until a file that has a temporary name has its own.

// Blocks every signal in the calling thread until its end. Not for work without a bound: Ctrl-C
// waits for it, too.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t every;
    ::sigfillset(&every);
    ::pthread_sigmask(SIG_SETMASK, &every, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

// A directory of its own for files of a while, which ends with all that is in it.
class TemporaryDirectory {
 public:
  // Makes NAME-XXXXXX in the directory for temporary files or, if that takes none, in `other`.
  // Throws FileError.
  explicit TemporaryDirectory(const std::string& name, const std::string& other = "/tmp");
  ~TemporaryDirectory() { remove(); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  void remove() const;

 private:
  std::string path_;
};

// Returns the text after the last slash, or all of `path` if it has none.
inline std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Like base_name(), without the " (deleted)" that the kernel appends to the path of an unlinked
// file.
inline std::string base_name_of_mapped(std::string_view path) {
  std::string name = base_name(path);
  name.resize(std::min(name.find(" (deleted)"), name.size()));
  return name;
}

// Returns whether a file of this name may be a report: X.memlog or X.memlog.zst.
inline bool is_report_name(std::string_view name) {
  const std::string_view compressed = format::kCompressedSuffix;
  if (name.ends_with(compressed)) name.remove_suffix(compressed.size());
  return name.ends_with(format::kSuffix);
}

}  // namespace mtrace::util
