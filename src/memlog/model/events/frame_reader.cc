#include "model/events/frame_reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "format/event_log.h"
#include "util/error.h"

namespace mtrace::events {
namespace {

constexpr size_t kPiece = 256 * 1024;  // bytes to read at once
constexpr std::string_view kMagic("\x28\xb5\x2f\xfd", 4);

int open_log(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) throw util::FileError(path, errno);
  return fd;
}

}  // namespace

FrameReader::FrameReader(const std::string& path)
    : path_(path == "-" ? "<stdin>" : path), file_(open_log(path)) {}

bool FrameReader::next(std::string& content) {
  for (;;) {
    const char* const from = buffer_.data() + used_;
    const size_t left = buffer_.size() - used_;
    const size_t size = left == 0 ? 0 : ZSTD_findFrameCompressedSize(from, left);
    const bool more = left == 0 || (ZSTD_isError(size) != 0 &&
                                    ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong &&
                                    left < format::kMostEventChunk);
    if (more) {
      if (!read_more()) return false;
      continue;
    }
    format::EventsEndEarly mark = {.magic = 0};
    if (size == sizeof mark) std::memcpy(&mark, from, sizeof mark);
    if (mark.magic == format::kEventsEndEarlyMagic) {
      early_end_ = static_cast<int>(mark.error);
      used_ += size;
      continue;
    }
    const unsigned long long held =
        ZSTD_isError(size) != 0 ? ZSTD_CONTENTSIZE_ERROR : ZSTD_getFrameContentSize(from, left);
    if (held > format::kMostEventChunk) {  // so are the values for errors
      skip_damage();
      continue;
    }
    content.resize(held);
    const size_t got = ZSTD_decompress(content.data(), content.size(), from, size);
    if (got != held) {
      skip_damage();
      continue;
    }
    used_ += size;
    return true;
  }
}

std::string missing_text(uint64_t damaged, const Contents& contents) {
  if (damaged != 0) return std::to_string(damaged) + " damaged chunks left out";
  const int error = contents.early_end();
  return error == 0 ? "" : std::string("the log ends early: ") + std::strerror(error);
}

bool FrameReader::read_more() {
  buffer_.erase(0, used_);
  used_ = 0;
  const size_t before = buffer_.size();
  // A long frame is looked at again each time.
  buffer_.resize(before + std::max(kPiece, before));
  ssize_t got;
  do {
    got = ::read(file_.get(), buffer_.data() + before, buffer_.size() - before);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) throw util::FileError(path_, errno);
  at_end_ = got == 0;
  return got > 0;
}

void FrameReader::skip_damage() {
  ++damaged_;
  const size_t found = buffer_.find(kMagic, used_ + 1);
  // A magic number may begin at the end of what was read.
  used_ = found != std::string::npos
              ? found
              : std::max(used_ + 1, buffer_.size() - std::min(buffer_.size(), kMagic.size() - 1));
}

}  // namespace mtrace::events
