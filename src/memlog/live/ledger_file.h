// Reads a ledger file (format/ledger.h) by the addresses of its process. The file may be damaged,
// truncated or hostile, and it changes during reading. So nothing is mapped, each byte is copied
// once, and a read outside the file fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/ledger.h"

namespace mtrace::live {

// The ledger as a whole is unusable. The text is "FILE: what is wrong".
class LedgerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Nothing is in it yet: its process is about to begin, or was killed before.
class EmptyLedger : public LedgerError {
 public:
  using LedgerError::LedgerError;
};

class LedgerFile {
 public:
  // Opens the ledger at `path`. Throws FileError when it cannot be opened or is no regular file;
  // LedgerError when it is no ledger, or has another version; EmptyLedger when it has no header.
  explicit LedgerFile(const std::string& path);
  // Like the above for an open file; takes over the descriptor.
  LedgerFile(int descriptor, std::string name);
  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;

  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_; }

  uint64_t size() const { return size_; }  // bytes, at the last refresh()

  // Reads the header again. Throws LedgerError.
  void refresh();
  // Its extents are not there: read() and offset_of() know them.
  const format::LedgerHeader& header() const { return *header_; }

  // Copies the process's bytes [address, address + size). Returns false when the file does not have
  // all of them.
  bool read(uint64_t address, void* to, size_t size) const;
  template <typename T>
  bool read(uint64_t address, T& to) const {
    return read(address, &to, sizeof to);
  }
  // Gets the file offset of these bytes, for a writer. Returns false when the file does not have
  // all of them.
  bool offset_of(uint64_t address, size_t size, uint64_t& offset) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void open_header();
  void read_extents();

  // Zeros, in pages of their own: of the 120 KB only the quarter that is read takes memory, which
  // counts where a thousand ledgers are open.
  struct Unmap {
    void operator()(format::LedgerHeader* header) const;
  };
  using HeaderPages = std::unique_ptr<format::LedgerHeader, Unmap>;
  static HeaderPages empty_header();

  int descriptor_;
  std::string name_;
  uint64_t size_ = 0;
  HeaderPages header_ = empty_header();
  std::vector<format::LedgerExtent> extents_;  // sorted by address
};

}  // namespace mtrace::live
