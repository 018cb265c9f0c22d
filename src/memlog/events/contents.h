// Where the contents of an event log come from, one frame after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace mtrace::events {

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

}  // namespace mtrace::events
