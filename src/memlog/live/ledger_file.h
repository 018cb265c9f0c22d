// A ledger file (format/ledger.h) as bytes of the process that it is of. It may be damaged, cut
// short or made by an enemy, and it changes while it is read: nothing is mapped, each byte is
// copied once, and what lies outside of the file is simply not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/ledger.h"

namespace mtrace::live {

// What is wrong with a ledger as a whole. Text is "FILE: what is wrong".
class LedgerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class LedgerFile {
 public:
  // Throws FileError: it cannot be opened or is no regular file; LedgerError: it is no ledger, or
  // of another version.
  explicit LedgerFile(const std::string& path);
  // The same of a file that is open, and from now on this one's.
  LedgerFile(int descriptor, std::string name);
  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;

  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_; }

  uint64_t size() const { return size_; }  // bytes, as of the last refresh()

  // Reads the header again. Throws LedgerError.
  void refresh();
  const format::LedgerHeader& header() const { return header_; }

  // Copies what the process had at [address, address + size). False: not all of it is in the file.
  bool read(uint64_t address, void* to, size_t size) const;
  template <typename T>
  bool read(uint64_t address, T& to) const {
    return read(address, &to, sizeof to);
  }
  // Where in the file that is, for who writes there; nothing if it is not.
  bool offset_of(uint64_t address, size_t size, uint64_t& offset) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void open_header();
  void take_extents();

  int descriptor_;
  std::string name_;
  uint64_t size_ = 0;
  format::LedgerHeader header_ = {};
  std::vector<format::LedgerExtent> extents_;  // by address
};

// A text of the header: up to its zero, never beyond the array.
template <size_t kSize>
std::string ledger_text(const char (&text)[kSize]) {
  size_t size = 0;
  while (size < kSize && text[size] != '\0') ++size;
  return std::string(text, size);
}

}  // namespace mtrace::live
