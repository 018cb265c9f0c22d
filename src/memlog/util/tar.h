// Archives in tar's format (POSIX ustar, with pax headers for long names), of regular files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace mtrace::util {

struct TarFile {
  std::string name;
  uint64_t size = 0;  // bytes
  timespec changed = {};
};

class TarWriter {
 public:
  explicit TarWriter(std::function<void(std::string_view)> sink) : sink_(std::move(sink)) {}

  // Begins a file; so many bytes of content must follow, by write().
  void begin(const TarFile& file);
  void write(std::string_view content);
  // Ends the archive.
  void finish();

 private:
  void header(const TarFile& file, char type);
  void pad();

  std::function<void(std::string_view)> sink_;
  uint64_t written_ = 0;  // of the file
};

// The archive cannot be read on. The text completes a sentence that begins with its name.
class TarError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TarReader {
 public:
  // Writes the next bytes of the archive to `to`, at most `size`; returns their number, 0 at the
  // end.
  using Source = std::function<size_t(char* to, size_t size)>;
  explicit TarReader(Source source) : source_(std::move(source)) {}

  // Stores the next file; what was not read of the last one is skipped. False: the archive has
  // ended. Throws TarError, also for links, devices and names that lead out of a directory.
  bool next(TarFile& file);
  // Writes the next bytes of the file's content to `to`; returns their number, 0 at its end. Throws
  // TarError.
  size_t read(char* to, size_t size);

 private:
  bool block(char (&to)[512]);
  void skip();
  void drain();

  Source source_;
  std::string name_ = "its first file";
  uint64_t left_ = 0;     // of the file's content
  uint64_t padding_ = 0;  // behind it
};

}  // namespace mtrace::util
