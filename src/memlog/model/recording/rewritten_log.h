// A log that is being written, without the blocks that live shorter than a time, or in several
// files.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "model/events/event_log.h"
#include "model/recording/culler.h"
#include "model/recording/log_file.h"
#include "model/recording/log_writer.h"

namespace mtrace::events {

struct RewriteWish {
  uint64_t cull = 0;        // milliseconds; 0: all blocks stay
  uint64_t most_bytes = 0;  // of the files together; 0: any number
  uint32_t files = 1;       // the newest that are kept

  bool any() const { return cull != 0 || most_bytes != 0; }
};

// Works in a thread of its own: to write what lives takes long, and the program's threads do not
// wait for long.
class RewrittenLog {
 public:
  // `file` must outlive this.
  RewrittenLog(const RewriteWish& wish, LogFile& file)
      : wish_(wish), file_(file), thread_([this] { work(); }) {}
  ~RewrittenLog() { finish(); }
  RewrittenLog(const RewrittenLog&) = delete;
  RewrittenLog& operator=(const RewrittenLog&) = delete;

  // Takes the content of the next frame of the whole log; the first is the header. Waits while very
  // many are waiting.
  void take(std::string content);
  // After the last frame: waits until all is written.
  void finish();

 private:
  static constexpr size_t kMostWaiting = 128;  // contents, of about a megabyte

  void work();
  void begin();
  void rewrite(std::string content);
  void look_at_size();

  RewriteWish wish_;
  LogFile& file_;
  uint64_t begun_with_ = 0;           // bytes of the file when it had what lives
  MadeContents* contents_ = nullptr;  // of log_
  std::unique_ptr<EventLog> log_;
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<Culler> culler_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace mtrace::events
