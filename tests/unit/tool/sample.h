// A memlog with every part, and what can be done to it.
#pragma once

#include <string>
#include <vector>

#include "model/profile/reader.h"
#include "util/error.h"

namespace mtrace::test {

// The lines are numbered from 1; a case replaces one, inserts text before one, or cuts.
inline const std::vector<std::string> kLines = {
    "# memlog 2",                                                             // 1
    "# program: /usr/bin/app",                                                // 2
    "# command: app --config x",                                              // 3
    "# pid: 4711",                                                            // 4
    "# seq: 2",                                                               // 5
    "# trigger: signal",                                                      // 6
    "# label: after-warmup",                                                  // 7
    "# started: 2026-11-20T20:15:00.000000Z",                                 // 8
    "# taken: 2026-11-20T20:15:31.123456Z",                                   // 9
    "# delta: +60 bytes +2 blocks",                                           // 10
    "# live: 1893421 bytes 20417 blocks",                                     // 11
    "# peak: 2441128 bytes 2026-11-20T20:15:12.000412Z",                      // 12
    "# lost: frames=0 stacks=0 blocks=0 inflight=0",                          // 13
    "+100\tblocks=+3\tlive=126720\tstack=5f3e1a90c2d4b718",                   // 14
    "\tg_realloc\tgmem.c:164\t(/usr/lib/libglib-2.0.so.0+0x5f3e1)",           // 15
    "\tg_slist_copy\tgslist.c:88\t(inlined)",                                 // 16
    "\tg_closure_notify\t(/usr/lib/libgobject-2.0.so.0+0x1234)",              // 17
    "\t(/usr/lib/libbonoboui-2.so.0#2+0x8a10)",                               // 18
    "\t(0x7f0012345678)",                                                     // 19
    "\t...",                                                                  // 20
    "-40\tblocks=-1\tlive=0\tstack=0000000000000001\tfuture=x",               // 21
    "\t...",                                                                  // 22
    "@mmap\t+4096\tblocks=+1",                                                // 23
    "# module: /usr/lib/libglib-2.0.so.0 build-id=5f1e base=0x7f21c0a00000",  // 24
    "# module: /usr/lib/libgobject-2.0.so.0 base=0x0",                        // 25
    "# module: /usr/lib/libbonoboui-2.so.0#2 build-id=00ff base=0x1000",      // 26
    "# host: web3 boot-id=6a0e8a3e-0000-4000-8000-000000000000 arch=x86_64",  // 27
    "# rss: 5000000 bytes",                                                   // 28
    "# uptime: 31.123 seconds",                                               // 29
    "# library: mtrace 0.1.0 allocator=libc.so.6 MTRACE_DEPTH=10",            // 30
    "# end",                                                                  // 31
};

inline std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

inline std::string replaced(size_t number, const std::string& line) {
  auto lines = kLines;
  lines[number - 1] = line;
  return join(lines);
}

inline std::string inserted(size_t number, const std::string& line) {
  auto lines = kLines;
  lines.insert(lines.begin() + static_cast<ptrdiff_t>(number) - 1, line);
  return join(lines);
}

inline std::string without(size_t number) {
  auto lines = kLines;
  lines.erase(lines.begin() + static_cast<ptrdiff_t>(number) - 1);
  return join(lines);
}

inline std::string error_of(const std::string& text) {
  try {
    profile::read("f", text);
  } catch (const util::FormatError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace mtrace::test
