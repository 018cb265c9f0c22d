// A directory that receives reports of many machines, each report once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "surface/fleet/report_key.h"
#include "util/file.h"

namespace mtrace::fleet {

struct StoreLimits {
  uint64_t bytes = 0;  // of all reports on the disk; 0: any number
  uint64_t age = 0;    // ns since a report was taken; 0: any
};

// Returns until when what was taken is older than the limits keep, ns since 1970.
uint64_t expired_until(const StoreLimits& limits);

// What is renamed or made in a directory survives a power failure only when the directory is on the
// disk. Throws FileError.
void flush_directory(const std::string& path);

enum class Receipt {
  kStored,
  kHeld,     // it was there already, or a merged one that contains it
  kExpired,  // it is older than what the limits keep
};

// Returns "stored", "held" or "expired".
const char* receipt_text(Receipt receipt);

struct ListedReport {
  ReportKey key;
  uint64_t taken = 0;  // ns since 1970
};

// The names of the files are the keys of the reports, so the directory itself says what has been
// received: DIR/HOST/PROGRAM-PID-START-BOOT-SEQ.memlog.zst. A report gets its name when it is
// whole and on the disk. When the limits are exceeded, the reports that were taken first are
// removed; the file .removed says up to which time, so that none of them is received again.
// All functions may be called from several threads at once.
class Store {
 public:
  // Makes the directory unless it exists, and locks it against other stores. Throws FileError, and
  // std::runtime_error when another process receives there.
  Store(const std::string& directory, const StoreLimits& limits);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // A report while it arrives. Without admit() it leaves nothing behind.
  class Incoming {
   public:
    explicit Incoming(const Store& store);
    ~Incoming();
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    // Throws FileError.
    void write(std::string_view bytes);
    // Of the report; after admit().
    const ReportKey& key() const { return key_; }

   private:
    friend class Store;
    std::string path_;  // empty: it has its name
    util::Descriptor file_;
    uint64_t size_ = 0;
    ReportKey key_;
  };

  // Gives the report its name, unless it is there. When this returns, the report survives a power
  // failure. Throws FormatError in the name of `title` when it is no whole memlog compressed with
  // zstd, FileError.
  Receipt admit(Incoming& incoming, const std::string& title);
  Receipt take(std::string_view bytes, const std::string& title);

  // Puts the report in the file `path`, one of named_path(), into the place of the same report,
  // with names. Removes the file and returns false when that report is not there any more, or there
  // is no such file. Throws FileError.
  bool replace(const ReportKey& key, const std::string& path);
  // The reports that arrived without all names and were not tried().
  std::vector<ReportKey> untried() const;
  // Names of the report were looked up, found or not: a later start does not look again.
  void tried(const ReportKey& key);
  // Files for reports that are being named; the next start removes those that are left.
  std::string named_path(size_t number) const;
  const std::string& directory() const { return directory_; }
  const StoreLimits& limits() const { return limits_; }
  std::string path(const ReportKey& key) const { return path_of(key.name()); }

  // Whether admit() would store a report of this key.
  bool wants(const ReportKey& key, uint64_t taken) const;
  // The reports that are there; of one host if `host`, a directory, is not empty.
  std::vector<ListedReport> list(const std::string& host) const;
  // Reports taken until then, in ns since 1970, have expired.
  uint64_t expired_until() const;
  // Returns the content of a report that is there; nothing: it is not.
  std::optional<std::string> read(const ReportKey& key) const;

 private:
  using Age = std::pair<uint64_t, std::string>;  // when it was taken, and the name

  std::string path_of(const std::string& name) const { return directory_ + '/' + name; }
  void scan();
  void scan_host(const std::string& host);
  void add(const ReportKey& key, uint64_t taken, uint64_t bytes);
  void drop(const ReportKey& key);
  uint64_t expired() const;
  void keep_limits();
  void remember_removed(uint64_t taken);

  std::string directory_;
  StoreLimits limits_;
  util::Descriptor lock_;
  uint64_t started_ = 0;      // ns since 1970
  mutable std::mutex mutex_;  // over what follows
  HeldReports held_;
  std::map<std::string, std::pair<uint64_t, uint64_t>> reports_;  // taken, bytes on the disk
  std::map<Age, uint64_t> by_age_;                                // bytes on the disk
  std::set<std::string> untried_;
  uint64_t bytes_ = 0;
  uint64_t removed_until_ = 0;
};

}  // namespace mtrace::fleet
