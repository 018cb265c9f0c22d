// Files, by raw system calls. Results are the kernel's: 0 or a descriptor, or a negative errno.
// Async-signal-safe. A descriptor for writing is never 0, 1 or 2 in the host's table: the host may
// have closed those and would find its output in our file. The library keeps no descriptor open.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/syscall.h"

namespace mtrace::base {

// Creates a file, mode 0600 whatever the umask; fails if the name exists, also as a symbolic link.
// `access`: O_WRONLY or O_RDWR, with O_APPEND if wanted.
long create_file(const char* path, int access = O_WRONLY);
// Opens an existing file to read, without blocking.
long open_to_read(const char* path, int directory = AT_FDCWD);
// Opens an existing file to read, as a descriptor above 2, for a program that gets it.
long open_for_helper(const char* path);
// Opens an existing file to read and write.
long open_to_change(const char* path);
// Reads at most `size` bytes from `offset` on; returns their number.
long read_at(int fd, void* data, size_t size, uint64_t offset);
// Creates an unnamed file, mode 0600, in the file system of `directory`, for writing; it is gone
// when closed, also by the end of the process. Not every file system can (-EOPNOTSUPP, -EISDIR).
long create_unnamed_file(const char* directory);
// Gives an unnamed file a name; -EEXIST when the name exists. Needs /proc.
long name_file(int fd, const char* path);
long write_all(int fd, const char* data, size_t size);
void close_file(int fd);
long remove_file(const char* path);
// Renames `from` to `to`; -EEXIST when `to` exists: nothing is ever replaced.
long publish(const char* from, const char* to);
// False where a filter may end the process for a file that it renames or removes (base/filters.h).
bool may_rename_files();
// Creates a file in memory (memfd), closed on exec.
long create_memory_file();
// Sets the size of a file; new bytes read as zero and take no room yet.
long set_file_size(int fd, uint64_t size);
// Maps the file shared; nullptr: failed.
void* map_shared_file(int fd, uint64_t size);
// Replaces a shared mapping by private zeros in one step, so that a signal handler always finds
// memory there. False: the mapping is unchanged.
bool replace_by_private(void* memory, uint64_t size);
// Moves the file position to the start.
long rewind_file(int fd);
// Bytes in the file, or a negative errno.
long file_size(int fd);
// The same of a regular file by its name, which is not opened; a link is none (-EINVAL).
long plain_file_size(const char* path);
// Copies all of `from`, from its start, to `to`, through the buffer.
long copy_file(int from, int to, char* buffer, size_t capacity);
bool is_directory(const char* path);
// Whether the path is missing or out of reach. False also where a filter forbids the call.
bool is_out_of_sight(const char* path);
// 0 when this process may create files in the directory, otherwise a negative errno.
long directory_error(const char* path);
// Identifies the file that a path leads to; all zero: no file.
struct FileIdentity {
  uint64_t device;
  uint64_t number;
  bool operator==(const FileIdentity&) const = default;
};
FileIdentity file_identity(const char* path);
FileIdentity opened_identity(int fd);
bool is_executable(const char* path);
// Largest size in bytes of a file that this process writes (RLIMIT_FSIZE); ~0 for no limit.
unsigned long file_size_limit();
// Largest size of private writable memory that this process may have (RLIMIT_DATA); ~0 for no
// limit.
unsigned long data_limit();

// ---- Reads a file of /proc line by line. Async-signal-safe.

// Calls take(line, length) for each line of an open file until one call returns false. A line ends
// with NUL in place of its newline; one that is longer than `text` is left out.
template <size_t kSize, typename Take>
void each_line(int file, char (&text)[kSize], const Take& take) {
  size_t held = 0;
  uint64_t at = 0;
  bool cut = false;  // the line under way began before `text`
  for (;;) {
    const long got = read_at(file, text + held, kSize - held, at);
    if (failed(got) || got == 0) return;
    at += static_cast<uint64_t>(got);
    const size_t size = held + static_cast<size_t>(got);
    size_t begin = 0;
    for (;;) {
      auto* const end = static_cast<char*>(memchr(text + begin, '\n', size - begin));
      if (end == nullptr) break;
      *end = '\0';
      if (!cut && !take(text + begin, static_cast<size_t>(end - text) - begin)) return;
      cut = false;
      begin = static_cast<size_t>(end - text) + 1;
    }
    const bool is_full = begin == 0 && size == kSize;
    cut |= is_full;
    held = is_full ? 0 : size - begin;
    memmove(text, text + begin, held);
  }
}

}  // namespace mtrace::base
