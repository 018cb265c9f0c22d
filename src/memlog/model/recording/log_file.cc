#include "model/recording/log_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include "format/event_log.h"
#include "util/error.h"

namespace mtrace::events {
namespace {

constexpr unsigned kMostNames = 1000;  // of one program and pid
// Of zstd. The thorough one makes logs an eighth smaller and takes 4 to 5 times as long, so the
// chunk after one that another had to wait for is compressed fast.
constexpr int kThorough = 6;
constexpr int kFast = 1;

int create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

}  // namespace

LogFile::LogFile(const std::string& place, const std::string& name, uint32_t pid,
                 std::unique_ptr<FrameSink> sink)
    : sink_(std::move(sink)) {
  if (sink_ != nullptr) {
    path_ = sink_->path();
    thread_ = std::thread([this] { work(); });
    return;
  }
  const bool directory = place.ends_with('/');
  int made = -1;
  for (unsigned attempt = 1; made < 0 && attempt <= kMostNames; ++attempt) {
    if (directory) {
      path_ = fmt::format("{}{}-{}{}{}", place, name, pid,
                          attempt > 1 ? fmt::format(".{}", attempt) : "", format::kEventsSuffix);
    } else {
      path_ = place;
      if (attempt > 1) path_ += fmt::format(".{}", pid);
      if (attempt > 2) path_ += fmt::format(".{}", attempt - 1);
    }
    made = create(path_);
    if (made < 0 && errno != EEXIST) break;
  }
  if (made < 0) throw util::FileError(path_, errno);
  file_ = util::Descriptor(made);
  if (const int error = reserve(0)) {
    end_early(error);
    throw util::FileError(path_, error);
  }
  thread_ = std::thread([this] { work(); });
}

LogFile::~LogFile() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  give_back();
}

// What was reserved. A file that cannot be cut is only larger on the disk.
void LogFile::give_back() {
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) return;
}

// Reserves room for so much and the mark behind it, so that a full disk is noticed while there is
// room for the mark. Returns 0 also where the file system cannot reserve.
int LogFile::reserve(size_t size) const {
  const size_t wanted = size + sizeof(format::EventsEndEarly);
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_),
                  static_cast<off_t>(wanted)) == 0) {
    return 0;
  }
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

void LogFile::end_early(int error) {
  const format::EventsEndEarly mark = {.error = static_cast<uint32_t>(error)};
  if (sink_ != nullptr) {
    sink_->put({reinterpret_cast<const char*>(&mark), sizeof mark});
    return;
  }
  if (size_ == 0) {
    ::unlink(path_.c_str());
    return;
  }
  // What part of a frame there is lies behind the mark, and is cut off at the end.
  if (::pwrite(file_.get(), &mark, sizeof mark, static_cast<off_t>(size_)) == sizeof mark) {
    size_ += sizeof mark;
  }
}

int early_end_of(const std::string& path) {
  const util::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  const format::EventsEndEarly expected;
  format::EventsEndEarly mark = {};
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  const off_t size = sizeof mark;
  if (end < size || ::pread(file.get(), &mark, sizeof mark, end - size) != size) return 0;
  return mark.magic == expected.magic && mark.size == expected.size ? static_cast<int>(mark.error)
                                                                    : 0;
}

void LogFile::append(std::string content) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !any_waiting_; });
  waiting_ = std::move(content);
  any_waiting_ = true;
  changed_.notify_all();
}

bool LogFile::make_next() {
  if (sink_ != nullptr) return false;
  const std::string path = path_ + ".new";
  ::unlink(path.c_str());
  next_ = util::Descriptor(create(path));
  return next_.get() >= 0;
}

void LogFile::begin_next(unsigned older) {
  give_back();
  const auto name = [&](unsigned number) { return fmt::format("{}.old{}", path_, number); };
  for (unsigned i = older; i > 1; --i) ::rename(name(i - 1).c_str(), name(i).c_str());
  // The name of the log is never without a file, where the file system has links.
  if (older != 0) {
    ::unlink(name(1).c_str());
    if (::link(path_.c_str(), name(1).c_str()) != 0) ::rename(path_.c_str(), name(1).c_str());
  }
  ::rename((path_ + ".new").c_str(), path_.c_str());
  file_ = std::move(next_);
  size_ = 0;
}

int LogFile::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !any_waiting_ && !busy_; });
  return error_;
}

int LogFile::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

void LogFile::work() {
  for (bool hurries = false;;) {
    std::string content;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return any_waiting_ || ends_; });
      if (!any_waiting_) return;
      content = std::move(waiting_);
      any_waiting_ = false;
      busy_ = error_ == 0;
    }
    changed_.notify_all();
    if (busy_) write(content, hurries ? kFast : kThorough);
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
      hurries = any_waiting_;
    }
    changed_.notify_all();
  }
}

void LogFile::write(const std::string& content, int level) {
  static const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                            ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<char> frame(ZSTD_compressBound(content.size()));
  const size_t size =
      ZSTD_compress2(context.get(), frame.data(), frame.size(), content.data(), content.size());
  int error = ZSTD_isError(size) != 0 ? ENOMEM
              : sink_ != nullptr      ? sink_->put({frame.data(), size})
                                      : reserve(size);
  for (size_t done = 0; sink_ == nullptr && error == 0 && done < size;) {
    const ssize_t wrote =
        ::pwrite(file_.get(), frame.data() + done, size - done, static_cast<off_t>(size_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) error = wrote < 0 ? errno : EIO;
    done += static_cast<size_t>(std::max<ssize_t>(wrote, 0));
  }
  if (error == 0) {
    size_ += size;
    return;
  }
  end_early(error);
  const std::lock_guard lock(mutex_);
  error_ = error;
}

}  // namespace mtrace::events
