// What the modules of this library that keep something of the process forget, and when.
#pragma once

namespace mtrace::hook {

enum class Reset : unsigned {
  kFork = 1,     // the child of a fork, with one thread; its tables may be its parent's
  kSession = 2,  // attached again: nothing of the last time counts. No thread is inside the library
  kTables = 4,   // the tables are new ones. As kFork or kSession
};
// By a thread that is alone in the library.
void reset(Reset why);

}  // namespace mtrace::hook
