#include "profile/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "profile/error.h"

namespace mtrace::profile {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ > 2) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

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

}  // namespace

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

void replace_file(const std::string& path, std::string_view content) {
  // The rename must not replace a symbolic link by a file.
  char real[PATH_MAX];
  const std::string target = ::realpath(path.c_str(), real) != nullptr ? real : path;
  struct stat state = {};
  const bool exists = ::stat(target.c_str(), &state) == 0;
  if (exists && !S_ISREG(state.st_mode)) {
    // A rename would put a file in the place of /dev/null.
    const Descriptor special(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (special.get() < 0 || !write_all(special.get(), content)) {
      throw FileError("cannot write " + path, errno);
    }
    return;
  }

  const size_t slash = target.rfind('/');
  std::string temporary =
      (slash == std::string::npos ? "" : target.substr(0, slash + 1)) + ".memlog-XXXXXX";
  {
    const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (file.get() < 0) throw FileError("cannot write beside " + path, errno);
    const bool good = (!exists || ::fchmod(file.get(), state.st_mode & 07777) == 0) &&
                      write_all(file.get(), content);
    if (!good) {
      const int error_number = errno;
      ::unlink(temporary.c_str());
      throw FileError("cannot write " + path, error_number);
    }
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(temporary.c_str());
    throw FileError("cannot replace " + path, error_number);
  }
}

}  // namespace mtrace::profile
