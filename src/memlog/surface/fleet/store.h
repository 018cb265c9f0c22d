// The names of reports and event logs among those of all machines.
#pragma once

#include "model/profile/model.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::fleet {

// Returns "HOST/PROGRAM-PID-START-BOOT" as in "web3/app-4711-20261120T201500.123456Z-6a0e8a3e": the
// process among those of all machines (doc/fleet.md).
std::string process_key(const profile::Header& header);

// A report is known by host, boot, pid, start and number. The same report has the same key wherever
// it is copied to, named or not, compressed or not.
struct ReportKey {
  std::string process;  // process_key()
  int64_t seq = 0;

  std::string host() const { return process.substr(0, process.find('/')); }
  // "web3/app-4711-20261120T201500.123456Z-6a0e8a3e-2.memlog.zst"
  std::string name() const;

  bool operator==(const ReportKey&) const = default;
};

// Reads what name() returns: no other text, so a name is never a path out of its directory.
std::optional<ReportKey> read_name(std::string_view name);

// Returns the name of an event log, "HOST/PROGRAM-PID-START-BOOT.events". `started`: the log, ns
// since 1970.
std::string event_log_name(const std::string& host, const std::string& boot_id,
                           const std::string& program, int64_t pid, uint64_t started);
// Whether event_log_name() may have returned it; so it is never a path out of its directory.
bool is_event_log_name(std::string_view name);

// A directory of the reports and event logs of many machines.

struct ReportFacts {
  ReportKey key;
  bool merged = false;    // all earlier reports of the process were merged into this one
  uint64_t taken = 0;     // ns since 1970
  bool snapshot = false;  // of a ledger: not one of the numbered reports of its process
};

// Reads the beginning and the end of the memlog at `path`, compressed or not, in constant memory.
// Throws FormatError in the name of `title` when it does not begin and end like one, FileError.
ReportFacts read_facts(const std::string& path, const std::string& title);

struct StoreLimits {
  uint64_t bytes = 0;  // of all files on the disk; 0: any number
  uint64_t age = 0;    // ns since a report was taken or a log was written to; 0: any
};

enum class Receipt {
  kStored,
  kHeld,     // it was there already
  kExpired,  // it is older than what the limits keep
};

// Returns "stored", "held" or "expired".
const char* receipt_text(Receipt receipt);

// What reports are copied to.
class Target {
 public:
  struct Listing {
    std::vector<ReportFacts> reports;
    uint64_t expired_until = 0;  // reports taken until then are not taken, ns since 1970
  };
  virtual ~Target() = default;
  // `host`: only the reports of this directory; empty: all.
  virtual Listing list(const std::string& host) = 0;
  // `bytes`: a report, compressed with zstd. `title`: for messages.
  virtual Receipt put(std::string_view bytes, const std::string& title) = 0;
};

// DIR/HOST/PROGRAM-PID-START-BOOT-SEQ.memlog.zst is a report, which gets its name when it is whole
// and on the disk; its time is when it was taken. DIR/HOST/PROGRAM-PID-START-BOOT.events is an
// event log, which can be read while it grows. When the limits are exceeded, the oldest files are
// removed; the file .removed says up to which time, so that no such report is taken again. Other
// programs may merge and resolve what is there. All functions may be called from several threads.
class Store : public Target {
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

   private:
    friend class Store;
    std::string path_;  // empty: it has its name
    util::Descriptor file_;
    uint64_t size_ = 0;
  };

  // Gives the report its name, unless it is there. When this returns, the report survives a power
  // failure. Throws FormatError in the name of `title` when it is no whole memlog compressed with
  // zstd, FileError.
  Receipt admit(Incoming& incoming, const std::string& title);
  Receipt put(std::string_view bytes, const std::string& title) override;

  // Appends to the event log if it has exactly `at` bytes, so nothing is there twice. Returns its
  // size; nothing: the limits do not allow so large a log. When this returns, the bytes survive a
  // power failure. `name`: see is_event_log_name(). Throws FileError.
  std::optional<uint64_t> append(const std::string& name, uint64_t at, std::string_view bytes);

  Listing list(const std::string& host) override;
  // Returns the content of a report that is there; nothing: it is not.
  std::optional<std::string> read(const ReportKey& key) const;

 private:
  struct File {
    uint64_t time = 0;   // ns since 1970: of a log, when it grew
    uint64_t bytes = 0;  // on the disk
  };

  std::string path_of(const std::string& name) const { return directory_ + '/' + name; }
  void scan();
  void make_host(const std::string& name);
  void add(const std::string& name, const File& file);
  void forget(const std::string& name);
  uint64_t expired_by_age() const;
  void make_room(uint64_t bytes);

  std::string directory_;
  StoreLimits limits_;
  util::Descriptor lock_;
  std::mutex mutex_;  // over what follows
  std::map<std::string, File> files_;
  std::set<std::pair<uint64_t, std::string>> by_time_;
  uint64_t bytes_ = 0;
  uint64_t removed_until_ = 0;
};

}  // namespace mtrace::fleet
