// Files, by raw system calls. Results are the kernel's: 0 or a descriptor, or a negative errno.
// Async-signal-safe. No descriptor stays open, and none is ever 0, 1 or 2: the host may have
// closed those and would find its output in our file.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::sys {

// A new file, mode 0600 whatever the umask, never an existing one, never through a symbolic link.
// `access`: O_WRONLY or O_RDWR, with O_APPEND if wanted.
long create_file(const char* path, int access = O_WRONLY);
// To read what is there; waits for nothing.
long open_to_read(const char* path, int directory = AT_FDCWD);
// To write into what is there.
long open_to_change(const char* path);
// Bytes read, at most `size`, from `offset` on.
long read_at(int fd, void* data, size_t size, uint64_t offset);
// A file of the same mode in the file system of `directory`, for writing, that is gone when it is
// closed, also by the end of the process. Not every file system can (-EOPNOTSUPP, -EISDIR).
long create_unnamed_file(const char* directory);
// Gives an unnamed file a name; -EEXIST when that exists. Needs /proc.
long name_file(int fd, const char* path);
long write_all(int fd, const char* data, size_t size);
void close_file(int fd);
long remove_file(const char* path);
// Gives `from` the name `to`; -EEXIST when that exists: nothing is ever replaced.
long publish(const char* from, const char* to);
// An unnamed file in memory that programs started later do not inherit.
long create_memory_file();
// Gives a file that size; what is new reads as zero, and takes no room yet.
long set_file_size(int fd, uint64_t size);
// Memory that is the file's, for whoever maps it; nullptr: not possible.
void* map_shared_file(int fd, uint64_t size);
// Puts private zeros in place of such memory, in one step, so that a signal handler always finds
// something there. False: it is as it was.
bool replace_by_private(void* memory, uint64_t size);
// The next read or write begins at the start.
long rewind_file(int fd);
// Bytes in the file, or a negative errno.
long file_size(int fd);
// Writes all that `from` holds, from its start, to `to`, by way of the buffer.
long copy_file(int from, int to, char* buffer, size_t capacity);
bool file_exists(const char* path);
// This process cannot come to the file. False also where it may not ask.
bool is_out_of_sight(const char* path);
// 0 when this process may make files in the directory, otherwise a negative errno.
long directory_error(const char* path);
// Which file a path leads to; all zero: none.
struct FileIdentity {
  uint64_t device;
  uint64_t number;
  bool operator==(const FileIdentity&) const = default;
};
FileIdentity file_identity(const char* path);
FileIdentity opened_identity(int fd);
bool is_executable(const char* path);
// Bytes a file of this process may have (RLIMIT_FSIZE); ~0 for no limit.
unsigned long file_size_limit();
// Largest size of private writable memory that this process may have (RLIMIT_DATA); ~0 for no
// limit.
unsigned long data_limit();

}  // namespace mtrace::sys
