// The threads of a process and how it ended, from /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mtrace::target {

std::vector<pid_t> all_tasks(pid_t pid);

// Returns the state of a thread: 'R', 'S', 'D', 'T', ...; 0: it is gone.
char task_state(pid_t pid, pid_t tid);
// Returns the value of the line "KEY:" of a thread's status, without the blanks before it; empty:
// there is none, or the thread is gone.
std::string task_status(pid_t pid, pid_t tid, const std::string& key);
inline bool is_ending(char state) { return state == '\0' || state == 'Z' || state == 'X'; }

// Returns "has ended meanwhile, by SIGKILL", "has ended meanwhile, with status 3", ...; empty: it
// has not ended.
std::string how_it_ended(pid_t pid);

}  // namespace mtrace::target
