#include "analyze/runtime_keeps.h"

namespace mtrace::analyze {

const char kRuntimeKeeps[] =
    R"(# What C and C++ runtimes keep until the end: not the program's to free.

# libstdc++: memory for exceptions when there is none any more, 72,704 bytes, made at its start
frames:module:/libstdc\+\+\.so < module:/ld-linux

# libc: buffers of stdin, stdout and files. A file that was never closed shows by fopen.
frames:function:^_IO_file_doallocate$
frames:function:^_IO_wfile_doallocate$

# libc: the lists of atexit, the time zone, message catalogues
frames:function:^(calloc|malloc)$ < function:^__new_exitfn$
frames:function:^__new_exitfn$
function:^(tzset_internal|__tzfile_read|__tz_convert|tzset)$
function:^(_nl_load_domain|_nl_find_domain|__dcigettext)$

# libc: locales that setlocale has loaded
function:^(setlocale|_nl_find_locale|_nl_load_locale_from_archive)$

# libc: name service modules, and the buffers of functions that return static data
function:^_*nss_(action|module|database|passwd|group|shadow|hosts|services)_\w+$
frames:function:^get(pw|gr|sp)(nam|uid|gid|ent)$
frames:function:^get(host|net|proto|serv)by(name2?|addr|number|port)$

# The loader: objects, thread-local storage of threads that still run
frames:module:/ld-linux
frames:function:^_?_dl_allocate_tls
frames:function:^(calloc|malloc)$ < function:^_?_dl_allocate_tls
)";

std::vector<StackPattern> runtime_keeps() {
  return read_suppressions("the built-in list", kRuntimeKeeps);
}

}  // namespace mtrace::analyze
