// Reads the zstd frames of an event log, one after the other, while the file may grow.
#pragma once

#include <cstdint>
#include <string>

#include "events/contents.h"
#include "profile/descriptor.h"

namespace mtrace::events {

class FrameReader : public Contents {
 public:
  // Opens the file at `path`; "-" is standard input. Throws profile::FileError.
  explicit FrameReader(const std::string& path);

  // Stores the content of the next frame. False: the file holds no more whole frames now. Skips
  // damaged ones. Throws profile::FileError.
  bool next(std::string& content) override;

  const std::string& path() const override { return path_; }
  uint64_t damaged() const override { return damaged_; }
  bool cut_short() const override { return at_end_ && used_ < buffer_.size(); }
  int early_end() const override { return early_end_; }

 private:
  bool read_more();
  void skip_damage();

  std::string path_;
  profile::Descriptor file_;
  std::string buffer_;  // read, from `used_` on not decoded
  size_t used_ = 0;
  bool at_end_ = false;
  uint64_t damaged_ = 0;
  int early_end_ = 0;
};

// Says what is missing of a log of which so many frames were left out; empty: nothing.
std::string missing_text(uint64_t damaged, const Contents& contents);

}  // namespace mtrace::events
