// Reads the text files of /proc. A process may end between any two reads: the functions then return
// nothing, and never throw.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtrace::process {

// Returns "/proc/PID/FILE".
std::string proc_path(pid_t pid, std::string_view file);
// Returns "/proc/PID/task/TID/FILE".
std::string task_path(pid_t pid, pid_t tid, std::string_view file);

// Returns the whole file; nothing, with errno, when it cannot be read.
std::optional<std::string> read_proc(const std::string& path);

// Returns the names of a directory's entries that are positive numbers, ascending.
std::vector<pid_t> ids_in(const std::string& directory);

// Returns the fields of a stat file from the third (the state) on; empty: the process is gone.
std::vector<std::string> stat_fields(const std::string& path);

// Returns the value of the line "KEY:" of a status file's text, without the blanks before it;
// empty: there is no such line.
std::string status_value(std::string_view status, std::string_view key);

// Returns the bytes of a line "KEY: 1234 kB" of a status file's text; 0: there is no such line.
uint64_t status_bytes(std::string_view status, std::string_view key);

}  // namespace mtrace::process
