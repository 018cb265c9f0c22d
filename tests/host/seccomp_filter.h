// Commands under a filter of system calls (seccomp) that was there before them.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "process.h"

namespace mtrace::test {

// What the command does before it executes the program, it does before the filter is there.
inline Command under_filter(Command command, std::vector<sock_filter> code) {
  command.before_exec = [before = command.before_exec, code = std::move(code)]() mutable {
    if (before) before();
    const sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      ::_exit(99);
    }
  };
  return command;
}

// Adds what happens to a call of this number.
inline void answer_call(std::vector<sock_filter>& code, unsigned number, unsigned answer) {
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
}

}  // namespace mtrace::test
