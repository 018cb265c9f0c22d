#include "analyze/library_table.h"

namespace mtrace::analyze {

const char kAllocators[] =
    R"(# Allocation functions. A stack is at one of them, so they are not shown.

# libc
function:^_*(libc_)?(malloc|calloc|realloc|reallocarray|free|cfree|valloc|pvalloc)$
function:^_*(libc_)?(memalign|aligned_alloc|posix_memalign)(_impl)?$
function:^_*(malloc|calloc|realloc|memalign)_(impl|internal|check|hook|hook_ini)$
function:^(_mid_memalign|tcache_init|ptmalloc_init|mmap|mmap64|mremap|sbrk|brk)$

# C++
function:^operator (new|delete)(\[\])?$

# tcmalloc, mimalloc, jemalloc, rpmalloc, snmalloc, TBB
function:^_*(tc|mi|je|rp|sn|rte|scalable)_\w*(alloc|new|memalign|memdup|strdup)\w*$
function:^(tcmalloc|mimalloc|snmalloc|rml)::
function:^\(anonymous namespace\)::do_malloc|^do_malloc|^tcmalloc_

# Rust
function:^(__rustc::)?__(rust|rdl|rg)_(alloc|alloc_zeroed|realloc)$
function:^alloc::alloc::

# Python
function:^_?Py(Mem|Object)_(Raw)?(Malloc|Calloc|Realloc)$

module:/lib(jemalloc|mimalloc|tcmalloc\w*|rpmalloc|snmalloc\w*|tbbmalloc\w*)(-[^/]*)?\.so
)";

const char kInternals[] =
    R"(# The internals of libraries. A run of them is one line.

# The C++ standard library and its runtime
function:^(std|__gnu_cxx|__gnu_debug|__gnu_parallel|__cxxabiv1|__pstl)::
function:^__(cxa|gxx)_\w+$
function:^execute_native_thread_routine(_compat)?$
module:/lib(stdc\+\+|c\+\+|c\+\+abi|gcc_s|supc\+\+)\.so

# Boost, Abseil's containers and strings, {fmt}
function:^boost::
function:^absl::(lts_\w+::)?\w*internal\w*::
function:^absl::(lts_\w+::)?((flat|node)_hash_(map|set)|btree_\w+|InlinedVector|FixedArray)(::|$)
function:^absl::(lts_\w+::)?(Cord|Str\w+|AnyInvocable|FunctionRef)(::|$)
function:^fmt::

# Rust: core and alloc
function:^(core|alloc)::(any|array|boxed|borrow|cell|char|clone|cmp|collections|convert|default)::
function:^(core|alloc)::(ffi|fmt|future|hash|iter|marker|mem|num|ops|option|panic|panicking)::
function:^(core|alloc)::(pin|ptr|raw_vec|rc|result|slice|str|string|sync|task|time|vec)::
function:^hashbrown::
function:^(rust_begin_unwind|__rust_\w+)$

# GLib: memory, strings and containers
function:^g_(try_)?(malloc|realloc|calloc|new|renew|aligned_alloc|memdup|slice_)\w*$
function:^g_(str|utf8_|string_|bytes_|array_|ptr_array_|byte_array_|list_|slist_|queue_)\w*$
function:^g_(hash_table_|tree_|node_|sequence_|variant_|quark_|intern_|g?datalist_)\w*$

# Python: the interpreter and the modules that come with it or from others
module:/python[23](\.\d+)?(-dbg)?$
module:/libpython[23](\.\d+)?d?\.so
module:/lib(64)?/python[23](\.\d+)?/
module:/(site|dist)-packages/
module:^<frozen 

# libc: strings, stdio, directories, environment
function:^_*(strn?dup[a]?|wcsdup|v?asprintf\w*|vasprintf_internal|getline|getdelim)$
function:^_*(fopen\w*|fdopen|freopen|fmemopen|open_w?memstream|popen|tempnam|setvbuf)$
function:^_*(v?[fsd]?n?w?printf\w*|f?puts|f?putc|fwrite|fread|fgets|f?scanf|perror)$
function:^_IO_\w+$
function:^_*(opendir|fdopendir|scandir\w*|glob|globfree|realpath|canonicalize_file_name|getcwd)$
function:^_*(setenv|putenv|setlocale|newlocale|qsort\w*|tsearch|hcreate\w*|getaddrinfo|regcomp)$
module:/(libc|libm|libpthread|librt|libdl|libresolv|ld-linux[^/]*|ld-musl[^/]*)([.-][^/]*)?\.so
)";

const char kStartUp[] =
    R"(# What runs before main, or before the function of a thread. At the end of a stack it is not shown.

function:^_+(start|libc_start_main\w*|libc_start_call_main|libc_csu_init|clone3?|dl_start\w*)$
function:^_*(start_thread|clone3|dl_init|call_init)$
function:^(main::)?lang_start(_internal)?(::|$)
function:^mtrace_held_main$
)";

const char kSystem[] =
    R"(# Libraries of the system: not a program's own, but nothing is known of their insides.

module:^/(usr/)?lib(32|64|x32)?/([^/]+|[^/]+-linux-[^/]+/.*)$
module:^\[
)";

}  // namespace mtrace::analyze
