// Reads the zstd frames of an event log, one after the other, while the file may grow.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "util/file.h"

namespace mtrace::events {

// Where the contents of an event log come from, one frame after the other.

class Contents {
 public:
  virtual ~Contents() = default;
  // Stores the content of the next frame. False: there is none now; later there may be.
  virtual bool next(std::string& content) = 0;
  // Of the log, for messages.
  virtual const std::string& path() const = 0;
  // Frames that were left out.
  virtual uint64_t damaged() const { return 0; }
  // The errno with which the log says that it could not be written to its end; 0: it does not.
  virtual int early_end() const { return 0; }
  // The log ends inside a frame.
  virtual bool cut_short() const { return false; }
};

// Those that this process makes itself.
class MadeContents : public Contents {
 public:
  void add(std::string content) { waiting_.push_back(std::move(content)); }
  bool next(std::string& content) override {
    if (waiting_.empty()) return false;
    content = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_ = "the event log";
  std::deque<std::string> waiting_;
};

class FrameReader : public Contents {
 public:
  // Opens the file at `path`; "-" is standard input. Throws util::FileError.
  explicit FrameReader(const std::string& path);

  // Stores the content of the next frame. False: the file holds no more whole frames now. Skips
  // damaged ones. Throws util::FileError.
  bool next(std::string& content) override;

  const std::string& path() const override { return path_; }
  uint64_t damaged() const override { return damaged_; }
  bool cut_short() const override { return at_end_ && used_ < buffer_.size(); }
  int early_end() const override { return early_end_; }

 private:
  bool read_more();
  void skip_damage();

  std::string path_;
  util::Descriptor file_;
  std::string buffer_;  // read, from `used_` on not decoded
  size_t used_ = 0;
  bool at_end_ = false;
  uint64_t damaged_ = 0;
  int early_end_ = 0;
};

// Says what is missing of a log of which so many frames were left out; empty: nothing.
std::string missing_text(uint64_t damaged, const Contents& contents);

}  // namespace mtrace::events
