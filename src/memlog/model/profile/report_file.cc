#include "model/profile/report_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

#include "format/memlog.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::profile {
namespace {

// Renames a file, never over another. Returns 0 or an errno.
int move_file(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Not every file system can.
  if (::link(from.c_str(), to.c_str()) != 0 || ::unlink(from.c_str()) != 0) return errno;
  return 0;
}

}  // namespace

bool is_compressed_name(std::string_view path) { return path.ends_with(format::kCompressedSuffix); }

void write_report(const std::string& path, std::string_view text, bool compressed) {
  const util::HeldSignals held;  // where every file has a name, it has one while it is written
  if (!compressed) return util::replace_file(path, text);
  util::Replacement file(path);
  util::compress(text, [&](std::string_view piece) { file.write(piece); });
  file.finish();
}

std::string compress_report(const std::string& path, std::string_view text) {
  if (is_compressed_name(path)) {
    write_report(path, text, true);
    return path;
  }
  struct stat state = {};
  if (::lstat(path.c_str(), &state) != 0) throw util::FileError("cannot read " + path, errno);
  if (!S_ISREG(state.st_mode)) {
    throw std::runtime_error("cannot compress " + path + ": it is not a regular file");
  }
  const std::string compressed = path + format::kCompressedSuffix;
  int error_number = EEXIST;
  if (::lstat(compressed.c_str(), &state) != 0) {
    const util::HeldSignals held;  // what is compressed has the name that says so
    write_report(path, text, true);
    error_number = move_file(path, compressed);
    if (error_number == 0) return compressed;
  }
  write_report(path, text, false);
  if (error_number != EEXIST) throw util::FileError("cannot rename " + path, error_number);
  return path;
}

void replace_report(const util::Text& before, std::string_view after, bool compress) {
  const std::string& path = before.path;
  if (compress && !is_compressed_name(path)) {
    if (compress_report(path, std::string(after)) != path) return;
    throw std::runtime_error(fmt::format("{0} is not compressed: there is a {0}{1} already", path,
                                         format::kCompressedSuffix));
  }
  if (after != before.text || (compress && !before.compressed)) {
    write_report(path, after, compress || before.compressed);
  }
}

}  // namespace mtrace::profile
