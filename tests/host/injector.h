// Runs a program whose library's own system calls fail on demand: a tracer between the kernel and
// those calls that libmtrace.so itself makes. What libc and the program call is left alone, so it
// is the library as it is shipped that has to do without.
#pragma once

#include <map>
#include <string>

#include "process.h"

namespace mtrace::test {

struct Fault {
  long from = 0;        // number of the library's call that fails, from 1; 0: none does
  bool and_on = false;  // and all that follow
  long only = -1;  // counted are calls of this number alone; -1: all but those that cannot fail
  int error = 12;  // ENOMEM
};

struct Injected {
  Result result;
  long calls = 0;   // that were counted
  long faults = 0;  // that failed
};

// The program's output goes to command.output_file. Its first process and thread, and the threads
// that those start, are traced.
Injected run_with_fault(const Command& command, const Fault& fault);

}  // namespace mtrace::test
