// Reads a ledger file (format/ledger.h) by the addresses of its process. The file may be damaged,
// truncated or hostile, and it changes during reading. So nothing is mapped, each byte is copied
// once, and a read outside the file fails.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "format/ledger.h"
#include "util/prelude.h"

namespace mtrace::ledger {

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
  const format::LedgerHeader& header() const { return *header_; }

  // Copies the process's bytes [address, address + size). Returns false when the file does not have
  // all of them.
  bool read(uint64_t address, void* to, size_t size) const;
  template <typename T>
  bool read(uint64_t address, T& to) const {
    return read(address, &to, sizeof to);
  }
  // The command line, as the library has escaped it; empty: not kept.
  std::string command() const;
  // Gets the file offset of these bytes, for a writer. Returns false when the file does not have
  // all of them.
  bool offset_of(uint64_t address, size_t size, uint64_t& offset) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void open_header();
  void read_extents();

  int descriptor_;
  std::string name_;
  uint64_t size_ = 0;
  std::unique_ptr<format::LedgerHeader> header_ = std::make_unique<format::LedgerHeader>();
  std::vector<format::LedgerExtent> extents_;  // sorted by address
};

// Reads the library's chunked arrays (base/growing_array.h) from another process.

// An array in chunks of kChunk elements. Elements never written, or not in the file, read as zero.
template <typename T, uint32_t kChunk>
class ChunkedCopy {
 public:
  ChunkedCopy(const LedgerFile& file, uint64_t chunks) : file_(file), chunks_(chunks) {}
  T get(uint32_t index) {
    auto [at, fresh] = copies_.try_emplace(index / kChunk);
    if (fresh) load(index / kChunk, at->second);
    return at->second.empty() ? T{} : at->second[index % kChunk];
  }

 private:
  void load(uint32_t chunk, std::vector<T>& copy) {
    uint64_t address = 0;
    if (!file_.read(chunks_ + uint64_t{chunk} * sizeof address, address) || address == 0) return;
    copy.resize(kChunk);
    if (!file_.read(address, copy.data(), kChunk * sizeof(T))) copy.clear();
  }

  const LedgerFile& file_;
  uint64_t chunks_;  // address of the array of chunk addresses
  absl::flat_hash_map<uint32_t, std::vector<T>> copies_;
};

// Writes words of a ledger that the library leaves to other processes.

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

// What memlog asks of a process through its ledger: a report, and the end of a wait at exit. Only
// words that the library leaves to other processes are written.

// Requests a report through the ledger. The caller must hold the turn
// (process/run/asked_process.h).

// Makes the process write a numbered report at the next allocation or free of any thread. Lowers
// the limits up to which threads batch changes, so that they check for requests; changes nothing
// else of theirs. `label`: at most 256 bytes, for the report's header. `names`: the caller fills in
// the report's names, if the header then has its number in `names_left`. Returns false with errno
// when the file cannot be written.
bool request_report(const LedgerFile& file, const std::string& label, bool names = false);

// Withdraws the request, unless the process is answering it already.
void withdraw_request(const LedgerFile& file);

// The waits of a process for memlog (MTRACE_HOLD_EXIT), through its ledger.

// Where a process waits.
enum class HoldPoint : uint8_t {
  kExit,       // before exit handlers and destructors
  kAfterExit,  // after them
};
inline constexpr HoldPoint kHoldPoints[] = {HoldPoint::kExit, HoldPoint::kAfterExit};

// Returns whether the process waits there and nobody has taken it yet. Reads one word.
bool waits_at(const LedgerFile& file, HoldPoint point);

// Tells the process how far memlog is. Returns false with errno when the file cannot be written.
bool set_hold(const LedgerFile& file, HoldPoint point, format::ExitHold hold);

}  // namespace mtrace::ledger
