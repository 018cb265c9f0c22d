// The file of an event log, being written: one zstd frame after the other, compressed and written
// by a thread of its own.
#pragma once

#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::events {

// Where the frames of an event log go, if not into a file.
class FrameSink {
 public:
  FrameSink() = default;
  virtual ~FrameSink() = default;
  FrameSink(const FrameSink&) = delete;
  FrameSink& operator=(const FrameSink&) = delete;

  // What the log is called. The part behind the last slash is its name as a file.
  virtual const std::string& path() const = 0;
  // Takes a whole frame, without waiting for a receiver. Returns 0, or the errno of why it takes no
  // more. By one thread at a time.
  virtual int put(std::string_view frame) = 0;
  // Returns whether it holds so much that events should be lost rather than put. From any thread.
  virtual bool is_full() const = 0;
  // No frame follows; `lost` events are not in those. Waits while what it holds is arriving.
  virtual void finish(uint64_t lost) = 0;
};

class LogFile {
 public:
  // Makes a new file: PLACE itself, or NAME-PID.events in the directory PLACE, which ends with a
  // slash. Replaces nothing: a name that is taken gets a number. Throws util::FileError. With a
  // `sink` no file: the frames go there.
  LogFile(const std::string& place, const std::string& name, uint32_t pid,
          std::unique_ptr<FrameSink> sink = nullptr);
  // Writes what is waiting.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  const std::string& path() const { return path_; }
  // Appends a frame with that content. Waits while two are waiting already.
  void append(std::string content);
  // The bytes of the frames so far; after finish().
  uint64_t size() const { return size_; }
  // Makes the next file. False: it cannot; the present one goes on.
  bool make_next();
  // After that and finish(): the file gets the name PATH.old1, what had that name PATH.old2 and so
  // on up to `older`; further ones are replaced. The next file takes its name.
  void begin_next(unsigned older);
  // Waits until all frames are written. Returns the errno of the first that could not be; 0: none.
  // The file then ends with the frame before it and a mark, and later ones are left out. A file
  // without any frame is removed.
  int finish();
  // The same, so far; without waiting.
  int error();
  // Returns whether events should be lost rather than appended: only where a sink is full.
  bool is_full() const { return sink_ != nullptr && sink_->is_full(); }
  // After finish(). Tells a sink how many events the log lacks, and waits while what it holds is
  // arriving.
  void await_arrival(uint64_t lost) {
    if (sink_ != nullptr) sink_->finish(lost);
  }

 private:
  void work();
  void write(const std::string& content, int level);
  int reserve(size_t size) const;
  void give_back();
  void end_early(int error);

  std::unique_ptr<FrameSink> sink_;
  std::string path_;
  util::Descriptor file_;
  util::Descriptor next_;
  uint64_t size_ = 0;  // of the whole frames
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  bool any_waiting_ = false;
  bool busy_ = false;
  bool ends_ = false;
  int error_ = 0;
  std::thread thread_;
};

// Returns why the log ends early: the errno of the write that failed; 0: it does not.
int early_end_of(const std::string& path);

}  // namespace mtrace::events
