// Copies reports from files of this machine or a server to a server or a store, each once.
#pragma once

#include <sys/stat.h>

#include "format/event_ring.h"
#include "format/ledger.h"
#include "model/recording/log_writer.h"
#include "model/symbols/symbolizer.h"
#include "surface/fleet/http_client.h"
#include "surface/fleet/store.h"
#include "util/prelude.h"
#include "view/json/views.h"

namespace mtrace::fleet {

// Gets what is wrong with a report that is left out.
using Complain = std::function<void(const std::string&)>;

// What reports are copied from.
class Source {
 public:
  virtual ~Source() = default;
  // Returns the numbered reports that are there, each key once.
  virtual std::vector<ReportFacts> look(const Complain& complain) = 0;
  // Returns a report compressed with zstd; nothing: it is gone. Throws FormatError, FileError.
  virtual std::optional<std::string> packed(const ReportKey& key) = 0;
};

class LocalReports : public Source {
 public:
  // `paths`: reports, and directories with reports, there or deeper.
  LocalReports(std::vector<std::string> paths, symbols::SearchPath where)
      : paths_(std::move(paths)), resolver_(std::move(where)) {}

  // The first taken comes first. Reads only files that are new or have changed. Throws
  // std::runtime_error when one of the paths does not exist.
  std::vector<ReportFacts> look(const Complain& complain) override;
  // Looks up the names here if the report has none. Only one thread at a time may look up names.
  std::optional<std::string> packed(const ReportKey& key) override;

 private:
  struct Known {
    ino_t inode = 0;
    off_t size = 0;
    timespec changed = {};
    std::optional<ReportFacts> facts;  // nothing: damaged
  };

  void look_at(const std::string& path, std::map<std::string, Known>& seen,
               const Complain& complain);

  std::vector<std::string> paths_;
  symbols::Symbolizer resolver_;
  std::map<std::string, Known> known_;        // by path
  std::map<std::string, std::string> found_;  // path, by the name of the report
};

struct Transferred {
  size_t stored = 0;
  size_t held = 0;  // were there already
  size_t expired = 0;
  size_t refused = 0;  // damaged, or not wanted by the server
  uint64_t bytes = 0;  // of the stored, compressed

  // "; 2 there already; 1 older than is kept; 3 left out", as far as there are any.
  std::string left_text() const;
};

// Sends a target the reports that it does not hold. Asks what it holds once and after each error,
// so that nothing needs to be remembered across runs.
class Copier {
 public:
  Copier(Target& target, Complain complain) : target_(target), complain_(std::move(complain)) {}

  // Copies what is new since the last call. Throws what looking, reading and storing throw; `done`
  // then counts what was done before, and the next call goes on from there.
  void copy(Source& source, Transferred& done);

 private:
  void ask(const std::string& host);
  bool send(Source& source, const ReportFacts& report, Transferred& done);

  Target& target_;
  Complain complain_;
  std::set<std::string> asked_;            // hosts
  std::set<std::string> held_;             // names of reports
  std::map<std::string, int64_t> merged_;  // by process: reports up to this number are in one
  uint64_t expired_until_ = 0;             // ns since 1970
  std::set<std::string> settled_;          // names of reports that are counted
};

// Servers on other machines: memlog serve and ClickHouse.

// Loads memlog-http.so, the part of memlog that uses cpp-httplib and OpenSSL, and returns its
// function of that name. With these libraries every command would take twice as long to start.
// `what` it makes is named in the error. Throws std::runtime_error when the module is not installed
// or a library that it needs is missing.
void* http_module_function(const char* name, const char* what);

// Returns the first line of the file, at least 16 printable characters. Throws std::runtime_error
// when it cannot be read, others may read it, or the token is shorter.
std::string read_token(const std::string& path);

// The server refused a request or cannot be reached.
class ServerError : public std::runtime_error {
 public:
  enum class Kind {
    kPassing,  // it may answer later
    kReport,   // it does not want this report
    kRefusal,  // it refuses all requests like this one
  };
  ServerError(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// A memlog serve. For one thread. All functions throw ServerError. One that the server is too busy
// for is tried again for three seconds.
class Remote : public Source, public Target {
 public:
  // `token`: empty: none is sent. Throws std::runtime_error when the HTTP client cannot be loaded.
  Remote(const HttpServerAddress& server, const std::string& token);

  Listing list(const std::string& host) override;
  Receipt put(std::string_view bytes, const std::string& title) override;
  std::vector<ReportFacts> look(const Complain& complain) override;
  std::optional<std::string> packed(const ReportKey& key) override;
  // Appends to the event log `name` if it has `at` bytes there. Returns how many it has then.
  // Without bytes it only asks.
  uint64_t append_log(const std::string& name, uint64_t at, std::string_view bytes);

 private:
  std::string ask(const std::string& method, const std::string& path, std::string_view body = "");
  json::Value answer_to(const std::string& method, const std::string& path,
                        std::string_view body = "");
  // Members of an answer. Throw ServerError when there is none of the type.
  std::string text_in(const json::Value& answer, const char* key) const;
  uint64_t number_in(const json::Value& answer, const char* key) const;
  [[noreturn]] void not_ours() const;

  std::string url_;
  std::string token_;
  std::unique_ptr<HttpClient> client_;
};

// Sending an event log to memlog serve --receive while it is written.
struct LogSending {
  std::string token;          // empty: none is sent
  std::string ca_file;        // as of HttpServerAddress
  uint64_t buffer = 0;        // bytes of frames that are kept for the receiver
  std::chrono::seconds wait;  // once the log has ended, until the receiver takes something
  std::string status;         // a pipe with a name, see process/run/regular_reports.h; empty: none
};

// Starts a process that keeps and sends the frames, in memory only. It goes on after this process
// has ended, until all has arrived. Frames with events fill the buffer; for frames without there is
// more room (kMoreRoom). The process of the caller must have one thread. Throws util::FileError,
// and std::runtime_error when the place is no URL.
std::unique_ptr<events::FrameSink> open_log_sender(const format::EventRingHeader& rings,
                                                   const format::LedgerHeader& ledger,
                                                   const LogSending& sending);

struct ClickHouseAddress {
  HttpServerAddress server;
  std::string database;
  std::string user;  // empty: the server's default
};

// Reads "clickhouse://[USER@]HOST[:PORT][/DATABASE]"; port 8123 and database "default" unless they
// are named. "clickhouses://" is encrypted; its port is 8443. Throws std::runtime_error that says
// what an address looks like.
ClickHouseAddress read_clickhouse_url(const std::string& url);

// ClickHouse's HTTP interface. For one thread.
class ClickHouse {
 public:
  // Throws std::runtime_error when the HTTP client cannot be loaded.
  ClickHouse(const ClickHouseAddress& address, const std::string& password);

  // Returns the answer to a statement; `rows` follows an INSERT. Throws ServerError, passing when
  // the server cannot be reached or has too much to do.
  std::string ask(const std::string& statement, std::string_view rows = "");

 private:
  std::string url_;
  std::string target_;
  HttpHeaders headers_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace mtrace::fleet
