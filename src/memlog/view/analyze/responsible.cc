#include "view/analyze/responsible.h"

#include "view/analyze/filter.h"
#include "view/analyze/function_name.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;

constexpr unsigned kNobody = UINT_MAX;  // a rank

// Whether the outer frame `at` rather names a run than the frame `known`.
bool tells_more(const profile::Frames& frames, size_t at, size_t known) {
  return !frames[at].function.empty() || frames[known].function.empty();
}

}  // namespace

std::string cut_text(size_t depth) {
  return fmt::format("(cut at {} frames, before own code)", depth);
}

Responsible::Known Responsible::known(const profile::Frames& frames, size_t at,
                                      const std::vector<Module>& modules) const {
  const Frame& frame = frames[at];
  const Code code = code_.of(frames, at, modules);
  if (code != Code::kOwn && code != Code::kSystem) return {code, kNobody};
  const bool named = !frame.function.empty() || !frame.source.empty();
  const unsigned kind = !named ? 2 : code_.wraps(frame.function) ? 1 : 0;
  return {code, 2 * kind + (code == Code::kOwn ? 0 : 1)};
}

std::vector<Responsible::Known> Responsible::all_known(const profile::Frames& frames,
                                                       const std::vector<Module>& modules) const {
  std::vector<Known> all;
  all.reserve(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) all.push_back(known(frames, i, modules));
  return all;
}

size_t Responsible::leader(const std::vector<Known>& known) {
  const auto first = std::min_element(
      known.begin(), known.end(), [](const Known& a, const Known& b) { return a.rank < b.rank; });
  if (first != known.end() && first->rank != kNobody) {
    return static_cast<size_t>(first - known.begin());
  }
  size_t last = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].code == Code::kLibrary) {
      last = i;
    } else if (known[last].code == Code::kLibrary) {
      break;
    }
  }
  return last;
}

size_t Responsible::of(const profile::Frames& frames, const std::vector<Module>& modules) const {
  std::vector<Known> seen;
  seen.reserve(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    seen.push_back(known(frames, i, modules));
    if (seen.back().rank == 0) return i;
  }
  return leader(seen);
}

bool Responsible::missing(const profile::Frames& frames, const std::vector<Module>& modules,
                          size_t depth) const {
  if (depth == 0) return false;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Code code = code_.of(frames, i, modules);
    if (code == Code::kOwn || code == Code::kSystem) return false;
  }
  return true;
}

std::vector<FoldedFrame> Responsible::folded(const profile::Frames& frames,
                                             const std::vector<Module>& modules,
                                             size_t depth) const {
  return lines_of(frames, all_known(frames, modules), missing(frames, modules, depth));
}

std::vector<FoldedFrame> Responsible::drawn(const profile::Frames& frames,
                                            const std::vector<Module>& modules,
                                            size_t depth) const {
  std::vector<Known> all = all_known(frames, modules);
  for (Known& one : all) {
    if (one.code == Code::kSystem) one = {Code::kOwn, one.rank - 1};
  }
  std::vector<FoldedFrame> lines = lines_of(frames, all, missing(frames, modules, depth));
  std::erase_if(lines, [](const FoldedFrame& line) { return line.inside; });
  std::vector<const Frame*> at;  // by index, which the list itself finds part by part
  for (const Frame& frame : frames) at.push_back(&frame);
  const auto same = [&](const FoldedFrame& a, const FoldedFrame& b) {
    if (a.missing() || b.missing()) return false;
    const Frame& one = *at[a.frame];
    const Frame& other = *at[b.frame];
    if (!one.function.empty()) return one.function == other.function;
    return other.function.empty() && one.module == other.module && one.offset == other.offset;
  };
  std::vector<FoldedFrame> out;  // outermost first
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto before = std::find_if(out.begin(), out.end(),
                                     [&](const FoldedFrame& known) { return same(known, *line); });
    if (before == out.end()) {
      out.push_back(*line);
      continue;
    }
    before->frames += line->frames;
    for (auto one = before + 1; one != out.end(); ++one) before->frames += one->frames;
    out.erase(before + 1, out.end());
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<FoldedFrame> Responsible::lines_of(const profile::Frames& frames,
                                               const std::vector<Known>& all, bool unknown) {
  std::vector<FoldedFrame> out;
  if (frames.empty()) return out;
  const size_t first = unknown ? frames.size() : leader(all);
  out.push_back({first, unknown ? size_t{0} : size_t{1}});
  FoldedFrame inside = {0, 0, true};
  for (size_t i = 0; i < first; ++i) {
    if (all[i].code == Code::kAllocator) continue;
    if (inside.frames == 0 || tells_more(frames, i, inside.frame)) inside.frame = i;
    ++inside.frames;
  }
  if (inside.frames != 0) out.push_back(inside);

  if (unknown) return out;
  size_t end = frames.size();
  while (end > first + 1 && all[end - 1].code == Code::kStartUp) --end;
  for (size_t i = first + 1; i < end;) {
    if (all[i].code == Code::kOwn) {
      out.push_back({i++});
      continue;
    }
    FoldedFrame run = {i, 0};
    for (; i < end && all[i].code != Code::kOwn; ++i) {
      // Of a thread's start "std::thread::_State_impl<...>::_M_run", not what called that.
      if (all[i].code != Code::kStartUp && tells_more(frames, i, run.frame)) run.frame = i;
      ++run.frames;
    }
    out.push_back(run);
  }
  return out;
}

namespace {

using profile::Place;

// The frame that has the address.
const Frame& placed(const profile::Frames& frames, size_t at) {
  while (at + 1 < frames.size() && frames[at].place == Place::kInlined) ++at;
  return frames[at];
}

}  // namespace

void FramePatterns::Any::add(std::string_view expression) {
  compile(expression);  // says what is wrong with it
  all_ += (all_.empty() ? "(?:" : "|(?:") + std::string(expression) + ')';
  compiled_ = nullptr;
}

bool FramePatterns::Any::match(const std::string& text) const {
  if (all_.empty()) return false;
  if (compiled_ == nullptr) compiled_ = compile(all_);
  return re2::RE2::PartialMatch(text, *compiled_);
}

void FramePatterns::add_pattern(std::string_view pattern) {
  const auto rest_after = [&](std::string_view prefix) {
    if (!pattern.starts_with(prefix) || pattern.substr(prefix.size()).starts_with(':')) {
      return false;
    }
    pattern.remove_prefix(prefix.size());
    return true;
  };
  if (rest_after("source:")) return sources_.add(pattern);
  if (rest_after("module:")) return modules_.add(pattern);
  const bool any = rest_after("any:");
  if (!any) rest_after("function:");
  functions_.add(pattern);
  if (!any) return;
  sources_.add(pattern);
  modules_.add(pattern);
}

void FramePatterns::add(const std::string& name, std::string_view text) {
  each_pattern_line(name, text, [&](std::string_view line) {
    if (!line.starts_with("function:") && !line.starts_with("source:") &&
        !line.starts_with("module:") && !line.starts_with("any:")) {
      throw PatternError("a line must begin with function:, source:, module: or any:");
    }
    add_pattern(line);
  });
}

bool FramePatterns::has_source(const std::string& source) const {
  if (sources_.empty() || source.empty()) return false;
  return sources_.match(source) || sources_.match(source.substr(0, source.rfind(':')));
}

LibraryCode::LibraryCode() {
  constexpr char kName[] = "the built-in table";
  allocators_.add(kName, kAllocators);
  wrappers_.add(kName, kWrappers);
  internals_.add(kName, kInternals);
  start_up_.add(kName, kStartUp);
  system_.add(kName, kSystem);
}

const LibraryCode::Known& LibraryCode::of_function(const std::string& function) const {
  const auto [place, added] = functions_.try_emplace(function);
  Known& known = place->second;
  if (!added) return known;
  const std::string called = called_name(function);
  known.own = own_.has_function(called);
  known.library = library_.has_function(called);
  known.wraps = wrappers_.has_function(called);
  known.code = allocators_.has_function(called)  ? Code::kAllocator
               : start_up_.has_function(called)  ? Code::kStartUp
               : internals_.has_function(called) ? Code::kLibrary
                                                 : Code::kOwn;
  return known;
}

const LibraryCode::Known& LibraryCode::of_module(const std::string& path) const {
  const auto [place, added] = modules_.try_emplace(path);
  Known& known = place->second;
  if (!added) return known;
  known.own = own_.has_module(path);
  known.library = library_.has_module(path);
  known.code = allocators_.has_module(path)  ? Code::kAllocator
               : internals_.has_module(path) ? Code::kLibrary
               : system_.has_module(path)    ? Code::kSystem
                                             : Code::kOwn;
  return known;
}

Code LibraryCode::of(const profile::Frames& frames, size_t at,
                     const std::vector<Module>& modules) const {
  const Frame& frame = frames[at];
  const Frame& address = placed(frames, at);
  const bool python = address.place == Place::kModule && modules[address.module].python;
  Known function;
  if (!frame.function.empty()) function = of_function(frame.function);
  // The table's functions are those of other languages.
  if (python) function.code = Code::kOwn;
  Known module;
  if (address.place == Place::kModule) {
    module = of_module(modules[address.module].path);
  } else if (frame.function.empty()) {
    module.code = Code::kSystem;
  }
  if (function.own || module.own || own_.has_source(frame.source)) return Code::kOwn;
  if (function.library || module.library || library_.has_source(frame.source)) {
    return Code::kLibrary;
  }
  return function.code != Code::kOwn ? function.code : module.code;
}

std::string library_table() {
  return fmt::format("{}\n{}\n{}\n{}\n{}", kAllocators, kWrappers, kInternals, kStartUp, kSystem);
}

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
function:^(pymalloc_alloc|new_arena|_PyObject_ArenaMalloc)$

module:/lib(jemalloc|mimalloc|tcmalloc\w*|rpmalloc|snmalloc\w*|tbbmalloc\w*)(-[^/]*)?\.so
)";

const char kWrappers[] =
    R"(# Functions that allocate for their callers. The first caller with another name is responsible.

function:^(\w+_)?[a-z]?(m|c|re)alloc(ate)?_?(n|zero|array|safe|usable|0|2)?(_or_\w+|_try|_fatal)?$
function:^\w*[a-z0-9](Malloc|Calloc|Realloc)(Zero|Raw|RawNN|NN|64)?$
function:^(x|\w+_)str(n?dup)$
function:^Perl_safesys(m|c|re)alloc$
# Java and node
function:^(os::(malloc|realloc|strdup\w*)|(Re)?[aA]llocateHeap)$
function:^node::NodeArrayBufferAllocator::
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

# What comes with node and Java, in their languages
function:^JS:\S* node:
function:^(\S+ )?(java|javax|jdk|sun|com\.sun)\.[^ (]*(\(.*)?$
function:^(Interpreter|StubRoutines.*|UncommonTrapBlob)$

# mtrace.h, mtrace_resources.h
function:^mtrace_(record|fds?)$

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
function:^(mtrace::life::)?mtrace_held_main$
)";

const char kSystem[] =
    R"(# Libraries of the system: not a program's own, but nothing is known of their insides.

module:^/(usr/)?lib(32|64|x32)?/([^/]+|[^/]+-linux-[^/]+/.*)$
module:/(node|nodejs|libnode\.so[^/]*|lib(jvm|java|jli|nio|net|zip)\.so)$
module:^\[
)";

}  // namespace mtrace::analyze
