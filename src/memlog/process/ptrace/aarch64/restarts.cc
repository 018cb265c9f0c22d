// See restarts.h: calls that end with EINTR stay as they are; all others the kernel begins again.
#include "process/ptrace/restarts.h"

namespace mtrace::process {

Restarts::Restarts(pid_t pid, const TargetMemory& memory, Range) : pid_(pid), memory_(memory) {}

uint64_t Restarts::code_size() { return 0; }
void Restarts::use_library(uint64_t) {}
void Restarts::settle(pid_t) {}
void Restarts::renew(pid_t) {}
bool Restarts::leave(user_regs_struct*) const { return false; }

}  // namespace mtrace::process
