#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/own_memory.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "base/writer.h"

namespace mtrace::base {
namespace {

// Opens the file of a descriptor below 3 again, at a number above 2: each open gets the lowest free
// number.
long open_above_standard(long fd, int access) {
  char own[40];
  Writer(own, sizeof own).text("/proc/thread-self/fd/").number(fd).finish();
  long low[2];
  unsigned held = 0;
  long again;
  while (!failed(again = call(SYS_openat, AT_FDCWD, own, access | O_CLOEXEC)) && again <= 2 &&
         held < 2) {
    low[held++] = again;
  }
  while (held > 0) call(SYS_close, low[--held]);
  return again;
}

// Moves a file to a number above 2; passes a negative errno on. Under a filter from before the
// start fcntl(2) may not be known to be allowed (base/filters.h). Where the process may have no
// such number, and its threads do not see this one, the file stays where it is.
long above_standard(long fd, int access) {
  if (failed(fd) || fd > 2) return fd;
  long higher = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
  if (failed(higher)) higher = open_above_standard(fd, access);
  if (failed(higher) && has_own_files()) return fd;
  call(SYS_close, fd);
  return higher;
}

}  // namespace

long create_file(const char* path, int access) {
  const long made =
      call(SYS_openat, AT_FDCWD, path, access | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (failed(made)) return made;
  const long fd = above_standard(made, access);
  if (failed(fd)) {
    remove_file(path);
  } else {
    call(SYS_fchmod, fd, 0600);
  }
  return fd;
}

long create_unnamed_file(const char* directory) {
  const long fd = above_standard(
      call(SYS_openat, AT_FDCWD, directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), O_WRONLY);
  if (!failed(fd)) call(SYS_fchmod, fd, 0600);
  return fd;
}

long name_file(int fd, const char* path) {
  // Not AT_EMPTY_PATH, which takes a privilege. thread-self: the first thread may have ended.
  char own[40];
  Writer(own, sizeof own).text("/proc/thread-self/fd/").number(fd).finish();
  return call(SYS_linkat, AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

long open_to_change(const char* path) {
  return above_standard(call(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOCTTY), O_RDWR);
}

long open_for_helper(const char* path) {
  return above_standard(open_to_read(path, AT_FDCWD), O_RDONLY);
}

long open_to_read(const char* path, int directory) {
  return call(SYS_openat, directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

long read_at(int fd, void* data, size_t size, uint64_t offset) {
  return call(SYS_pread64, fd, data, size, offset);
}

long create_memory_file() {
  return above_standard(call(SYS_memfd_create, "mtrace", MFD_CLOEXEC), O_RDWR);
}

long set_file_size(int fd, uint64_t size) { return call(SYS_ftruncate, fd, size); }

void* map_shared_file(int fd, uint64_t size) {
  const long memory =
      map_own(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return failed(memory) ? nullptr : reinterpret_cast<void*>(memory);
}

bool replace_by_private(void* memory, uint64_t size) {
  return !failed(map_own(memory, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

long rewind_file(int fd) { return call(SYS_lseek, fd, 0, SEEK_SET); }

long file_size(int fd) {
  struct stat info = {};
  const long result = call(SYS_fstat, fd, &info);
  return failed(result) ? result : info.st_size;
}

long copy_file(int from, int to, char* buffer, size_t capacity) {
  for (uint64_t offset = 0;;) {
    const long got = call(SYS_pread64, from, buffer, capacity, offset);
    if (got == -EINTR) continue;
    if (got <= 0) return got;
    const long error = write_all(to, buffer, got);
    if (error != 0) return error;
    offset += got;
  }
}

long write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const long wrote = call(SYS_write, fd, data, size);
    if (wrote == -EINTR) continue;
    if (failed(wrote)) return wrote;
    if (wrote == 0) return -EIO;
    data += wrote;
    size -= wrote;
  }
  return 0;
}

void close_file(int fd) { call(SYS_close, fd); }

long remove_file(const char* path) { return call(SYS_unlinkat, AT_FDCWD, path, 0); }

long publish(const char* from, const char* to) {
  long result = call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  if (result == -EINVAL || result == -ENOSYS) {  // not every file system knows the flag
    result = call(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0) remove_file(from);
  }
  return result;
}

bool may_rename_files() { return may_call(SYS_renameat2) && may_call(SYS_unlinkat); }

bool is_directory(const char* path) {
  struct stat info = {};
  return !failed(call(SYS_newfstatat, AT_FDCWD, path, &info, 0)) && S_ISDIR(info.st_mode);
}

bool is_out_of_sight(const char* path) {
  struct stat info = {};
  const long error = call(SYS_newfstatat, AT_FDCWD, path, &info, 0);
  return error == -ENOENT || error == -ENOTDIR || error == -EACCES;
}

long directory_error(const char* path) {
  char inside[4096];  // "path/." exists only in a directory
  const long error = Writer(inside, sizeof inside).text(path).text("/.").finish();
  return error != 0 ? -ENAMETOOLONG : call(SYS_faccessat, AT_FDCWD, inside, W_OK | X_OK);
}

long plain_file_size(const char* path) {
  struct stat info = {};
  const long error = call(SYS_newfstatat, AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW);
  if (failed(error)) return error;
  return S_ISREG(info.st_mode) ? info.st_size : -EINVAL;
}

FileIdentity file_identity(const char* path) {
  struct stat info = {};
  if (failed(call(SYS_newfstatat, AT_FDCWD, path, &info, 0))) return {};
  return {info.st_dev, info.st_ino};
}

FileIdentity opened_identity(int fd) {
  struct stat info = {};
  if (failed(call(SYS_fstat, fd, &info))) return {};
  return {info.st_dev, info.st_ino};
}

bool is_executable(const char* path) {
  const long answer = call(SYS_faccessat, AT_FDCWD, path, X_OK);
  if (answer != -EPERM) return answer == 0;
  // A filter forbids the call (base/filters.h).
  struct stat info = {};
  return !failed(call(SYS_newfstatat, AT_FDCWD, path, &info, 0)) && S_ISREG(info.st_mode) &&
         (info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

namespace {

unsigned long limit_of(int resource) {
  rlimit64 limit = {RLIM64_INFINITY, RLIM64_INFINITY};
  call(SYS_prlimit64, 0, resource, nullptr, &limit);
  return limit.rlim_cur;
}

}  // namespace

unsigned long file_size_limit() { return limit_of(RLIMIT_FSIZE); }
unsigned long data_limit() { return limit_of(RLIMIT_DATA); }

}  // namespace mtrace::base
