#include "util/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"

namespace mtrace::util {
namespace {

constexpr char kDescriptors[] = "/proc/self/fd/";
constexpr int kAttempts = 8;

}  // namespace

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool write_at(int descriptor, uint64_t offset, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written =
        ::pwrite(descriptor, content.data(), content.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    offset += static_cast<uint64_t>(written);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

size_t read_at(int descriptor, uint64_t offset, void* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(descriptor, static_cast<char*>(to) + done, size - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

FileError::FileError(const std::string& what, int error_number)
    : std::runtime_error(what + ": " + std::strerror(error_number)), error_number_(error_number) {}

std::string read_file(const std::string& path) {
  const Descriptor file(path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw FileError("cannot open " + path, errno);
  struct stat state = {};
  std::string content;
  if (::fstat(file.get(), &state) == 0 && S_ISREG(state.st_mode)) {
    content.reserve(static_cast<size_t>(state.st_size) + 1);
  }
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw FileError("cannot read " + path, errno);
    }
    content.append(buffer, static_cast<size_t>(got));
  }
}

Replacement::Replacement(const std::string& path) : path_(path), target_(path) {
  // The rename must not replace a symbolic link by a file.
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) != nullptr) target_ = real;
  struct stat state = {};
  const bool exists = ::stat(target_.c_str(), &state) == 0;
  if (exists && !S_ISREG(state.st_mode)) {
    // A rename would put a file in the place of /dev/null.
    file_ = Descriptor(::open(target_.c_str(), O_WRONLY | O_CLOEXEC));
    if (file_.get() < 0) throw FileError("cannot write " + path_, errno);
    return;
  }

  const size_t slash = target_.rfind('/');
  directory_ = slash == std::string::npos ? "./" : target_.substr(0, slash + 1);
  // Without a name it leaves nothing behind when this process is killed.
  if (::access(kDescriptors, F_OK) == 0) {
    file_ = Descriptor(::open(directory_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  }
  if (file_.get() < 0) {
    std::string name = directory_ + kTemporaryPrefix + "XXXXXX";
    file_ = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (file_.get() < 0) {
      const bool is_missing = errno == ENOENT;
      throw FileError(is_missing ? fmt::format("cannot write {}: {}", path_, directory_)
                                 : "cannot write a temporary file beside " + path_,
                      errno);
    }
    temporary_ = std::move(name);
  }
  const mode_t mode = exists ? state.st_mode & 07777 : 0600;
  if (::fchmod(file_.get(), mode) != 0) {
    const int error_number = errno;
    remove_temporary();
    throw FileError("cannot write " + path_, error_number);
  }
}

Replacement::~Replacement() { remove_temporary(); }

void Replacement::remove_temporary() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void Replacement::write(std::string_view content) {
  if (!write_all(file_.get(), content)) throw FileError("cannot write " + path_, errno);
}

// Only a file with a name can take the place of another.
void Replacement::give_name() {
  const std::string own = kDescriptors + std::to_string(file_.get());
  int error_number = EEXIST;
  for (int attempt = 0; error_number == EEXIST && attempt < kAttempts; ++attempt) {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    std::string name = directory_ + kTemporaryPrefix + std::to_string(::getpid()) + '-' +
                       std::to_string(now.tv_sec) + '-' + std::to_string(now.tv_nsec);
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
      return;
    }
    error_number = errno;
  }
  throw FileError("cannot replace " + path_, error_number);
}

void Replacement::finish() {
  if (directory_.empty()) return;
  const HeldSignals held;  // one between the two steps would leave the file
  if (temporary_.empty()) give_name();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw FileError("cannot replace " + path_, errno);
  }
  temporary_.clear();
  directory_.clear();
}

void replace_file(const std::string& path, std::string_view content) {
  Replacement file(path);
  file.write(content);
  file.finish();
}

TemporaryDirectory::TemporaryDirectory(const std::string& name, const std::string& other) {
  std::error_code error;
  path_ = std::filesystem::temp_directory_path(error);
  if (error || ::access(path_.c_str(), W_OK | X_OK) != 0) path_ = other;
  path_ += '/' + name + "-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) throw FileError("cannot make " + path_, errno);
}

void TemporaryDirectory::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace mtrace::util
