// Writes words of a ledger that the library leaves to other processes.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "live/ledger_file.h"

namespace mtrace::live {

// Opens the ledger for writing through the existing descriptor. Each function returns false with
// errno when the file cannot be written.
class LedgerWriter {
 public:
  explicit LedgerWriter(const LedgerFile& file)
      : file_(file),
        descriptor_(::open(fmt::format("/proc/self/fd/{}", file.descriptor()).c_str(),
                           O_RDWR | O_CLOEXEC)) {}
  ~LedgerWriter() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  LedgerWriter(const LedgerWriter&) = delete;
  LedgerWriter& operator=(const LedgerWriter&) = delete;
  bool valid() const { return descriptor_ >= 0; }

  // Writes a word of a table, by the process's address.
  template <typename T>
  bool write(uint64_t address, T value) const {
    uint64_t offset = 0;
    return file_.offset_of(address, sizeof value, offset) &&
           write_header(offset, &value, sizeof value);
  }
  // Writes a part of the header. `offset`: bytes from its start.
  bool write_header(uint64_t offset, const void* data, size_t size) const {
    return ::pwrite(descriptor_, data, size, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(size);
  }

 private:
  const LedgerFile& file_;
  int descriptor_;
};

}  // namespace mtrace::live
