// What was built: libmtrace.so as readelf and nm see it. It needs libc and nothing else, exports
// what it means to and no more, and cannot run C++ runtime code, initialisers or self-modifying
// code in a host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "expect.h"
#include "process.h"

namespace mtrace::test {
namespace {

std::string output_of(const std::vector<std::string>& argv) {
  const Result result = run({.argv = argv,
                             .env = plain_environment("/"),
                             .directory = "",
                             .input = "",
                             .output_file = "",
                             .before_exec = nullptr});
  EXPECT_TRUE(result.exited(0)) << argv[0] << ": " << result.err;
  EXPECT_NE(result.out, "") << argv[0];
  return result.out;
}

std::string readelf(const std::string& option) {
  return output_of({"/usr/bin/readelf", "--wide", option, library()});
}

std::string base_name(const std::string& symbol) { return symbol.substr(0, symbol.find('@')); }

std::set<std::string> symbols(const std::string& option) {
  std::set<std::string> names;
  for (const std::string& line :
       lines_of(output_of({"/usr/bin/nm", "--dynamic", option, library()}))) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    // The names of version nodes are absolute symbols, not something to call.
    if (line.find(" A ") == std::string::npos) names.insert(base_name(name));
  }
  return names;
}

std::set<std::string> imports() { return symbols("--undefined-only"); }
std::set<std::string> exports() { return symbols("--defined-only"); }

std::set<std::string> names_in(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Values of a dynamic tag such as NEEDED; entries without value count as "".
std::vector<std::string> dynamic(const std::string& tag) {
  std::vector<std::string> values;
  for (const std::string& line : lines_of(readelf("--dynamic"))) {
    const size_t at = line.find("(" + tag + ")");
    if (at == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(' ', at + tag.size() + 2);
    values.push_back(begin == std::string::npos ? "" : line.substr(begin));
  }
  return values;
}

// The C functions, and operator new and delete in every variant that C++17 has.
const std::set<std::string> kAllocation = names_in(
    "malloc calloc realloc reallocarray free cfree memalign posix_memalign aligned_alloc "
    "valloc pvalloc malloc_usable_size free_sized free_aligned_sized strdup __strdup strndup "
    "wcsdup mallopt malloc_trim mallinfo mallinfo2 _Znwm _Znam _ZnwmRKSt9nothrow_t "
    "_ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t "
    "_ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t _ZdlPv _ZdaPv "
    "_ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t _ZdlPvSt11align_val_t "
    "_ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t "
    "_ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t");
// What include/mtrace.h looks for.
const std::set<std::string> kApi = names_in(
    "mtrace_report mtrace_report_label mtrace_live_bytes mtrace_live_blocks mtrace_peak_bytes "
    "mtrace_usage mtrace_start mtrace_stop mtrace_note_text mtrace_save mtrace_update "
    "mtrace_compare mtrace_check mtrace_savepoint_new mtrace_savepoint_label "
    "mtrace_savepoint_update mtrace_savepoint_compare mtrace_savepoint_check "
    "mtrace_savepoint_explain mtrace_savepoint_free mtrace_record mtrace_release "
    "mtrace_backtrace mtrace_attach mtrace_detach mtrace_restart_code mtrace_twin "
    "mtrace_hold_exit mtrace_held_main");
// Ends of a process that run no exit handler, the program's view of the trigger signal, unloading,
// call-frame information of made code, the program's mappings, its becoming two or another, waiting
// for children, or giving up system calls, LeakSanitizer's interface, and the status block.
const std::set<std::string> kConduct = names_in(
    "_exit _Exit sigaction signal bsd_signal sysv_signal __sysv_signal sigset dlclose "
    "mlockall setuid setreuid setresuid __register_frame __register_frame_table "
    "__register_frame_info __register_frame_info_bases __register_frame_info_table "
    "__deregister_frame __deregister_frame_info __deregister_frame_info_bases "
    "mtrace_status_block mmap mmap64 munmap mremap sbrk brk execve execv execvp execvpe "
    "fexecve execveat _Fork daemon __libc_start_main exit quick_exit execl execlp execle "
    "prctl syscall posix_spawn posix_spawnp waitpid wait3 wait4 waitid clone "
    "__asan_default_options");

TEST(LeanTest, NeedsOnlyLibc) {
  for (const std::string& line : dynamic("NEEDED")) {
    EXPECT_TRUE(line.find("[libc.so.6]") != std::string::npos ||
                line.find("[ld-linux-x86-64.so.2]") != std::string::npos)
        << line;
  }
  EXPECT_FALSE(dynamic("NEEDED").empty());
}

// And nothing else, such as mtrace() and muntrace(), which are glibc's.
TEST(LeanTest, ExportsEveryHook) {
  std::set<std::string> wanted = kAllocation;
  wanted.insert(kConduct.begin(), kConduct.end());
  wanted.insert(kApi.begin(), kApi.end());
  EXPECT_EQ(exports(), wanted);
}

TEST(LeanTest, NoCxxRuntime) {
  for (const std::string& name : imports()) {
    for (const char* prefix :
         {"_ZSt", "_ZNSt", "_ZNKSt", "_ZTV", "_ZTI", "_Zn", "_Zd", "__cxa_throw", "__cxa_guard",
          "__cxa_begin", "__cxa_end", "__cxa_rethrow", "__cxa_allocate", "__cxa_pure",
          "__gxx_personality", "_Unwind_", "__dynamic_cast", "__register_frame",
          "__deregister_frame"}) {
      EXPECT_FALSE(name.starts_with(prefix)) << name;
    }
  }
}

// Calls that allocate, lock, buffer, read the environment of a setuid program, or belong to
// another part.
TEST(LeanTest, ImportsNothingDangerous) {
  const std::set<std::string> kForbidden = names_in(
      "malloc calloc realloc free reallocarray posix_memalign memalign aligned_alloc valloc "
      "pvalloc strdup strndup asprintf vasprintf printf fprintf vfprintf sprintf snprintf "
      "vsnprintf puts fputs fwrite fopen fclose fflush perror strerror stdout stderr stdin "
      "__printf_chk __fprintf_chk __snprintf_chk setlocale localeconv getenv setenv putenv "
      "unsetenv pthread_mutex_lock pthread_mutex_unlock pthread_create pthread_getattr_np "
      "pthread_key_create backtrace backtrace_symbols backtrace_symbols_fd dl_iterate_phdr "
      "localtime localtime_r gmtime strftime mktime tzset opendir readdir open open64 close "
      "read write mmap mmap64 munmap fork vfork system popen execve execvp posix_spawn waitpid "
      "wait abort __assert_fail __stack_chk_fail __tls_get_addr syscall sleep usleep nanosleep "
      "qsort exit");
  for (const std::string& name : imports()) {
    EXPECT_FALSE(kForbidden.contains(name)) << name;
  }
}

// What programs, and sanitizers in them, put functions of their own in place of. A sanitizer ends
// the program when one of these is called before it has started, and hooks are called before that.
TEST(LeanTest, ImportsNothingThatIsReplaced) {
  for (const std::string& name : imports()) {
    for (const char* prefix : {"mem", "str", "stp", "wcs", "sig", "pthread_"}) {
      EXPECT_FALSE(name.starts_with(prefix)) << name;
    }
  }
}

TEST(LeanTest, OneInitialiserAndNoFinaliser) {
  EXPECT_TRUE(dynamic("INIT").empty());
  EXPECT_TRUE(dynamic("FINI").empty());
  ASSERT_EQ(dynamic("INIT_ARRAYSZ").size(), 1u);
  EXPECT_EQ(dynamic("INIT_ARRAYSZ")[0], "8 (bytes)");
  EXPECT_TRUE(dynamic("FINI_ARRAYSZ").empty() || dynamic("FINI_ARRAYSZ")[0] == "8 (bytes)");
  EXPECT_TRUE(dynamic("PREINIT_ARRAY").empty());
  for (const std::string& line : lines_of(output_of({"/usr/bin/nm", library()}))) {
    EXPECT_LACKS(line, "_GLOBAL__sub_I");
    EXPECT_LACKS(line, "__static_initialization");
  }
}

// Tables are zero at the start: memory that is not there until it is used, and not in the file.
TEST(LeanTest, TablesTakeNoSpaceInTheFile) {
  const std::vector<std::string> lines = lines_of(output_of({"/usr/bin/size", library()}));
  ASSERT_EQ(lines.size(), 2u);
  std::istringstream sizes(lines[1]);
  uint64_t text, data;
  sizes >> text >> data;
  EXPECT_LT(data, 16u * 1024);
}

TEST(LeanTest, IsBoundAtLoadAndStaysLoaded) {
  const std::string text = readelf("--dynamic");
  EXPECT_HAS(text, "BIND_NOW");
  EXPECT_HAS(text, "NODELETE");
  EXPECT_TRUE(dynamic("TEXTREL").empty());
  EXPECT_EQ(dynamic("SONAME"), std::vector<std::string>{"Library soname: [libmtrace.so]"});
  EXPECT_TRUE(dynamic("RPATH").empty());
  EXPECT_TRUE(dynamic("RUNPATH").empty());
}

TEST(LeanTest, Segments) {
  bool stack = false;
  bool relro = false;
  for (const std::string& line : lines_of(readelf("--program-headers"))) {
    std::istringstream words(line);
    std::string type;
    std::string offset;
    std::string address;
    std::string physical;
    std::string file_size;
    std::string memory_size;
    if (!(words >> type >> offset >> address >> physical >> file_size >> memory_size)) continue;
    std::string flags;
    for (std::string word; words >> word && !word.starts_with("0x");) flags += word;
    if (type == "LOAD" || type == "GNU_STACK") {
      EXPECT_FALSE(flags.find('W') != std::string::npos && flags.find('E') != std::string::npos)
          << line;
    }
    // Static data counts against RLIMIT_DATA before the library can look at the limit.
    if (type == "LOAD" && flags.find('W') != std::string::npos) {
      EXPECT_LE(std::stoul(memory_size, nullptr, 16), 2304u << 10) << line;
    }
    stack |= type == "GNU_STACK";
    relro |= type == "GNU_RELRO";
    // Static TLS is scarce for a library that is loaded late; preloaded it costs each thread.
    if (type == "TLS") {
      EXPECT_LE(std::stoul(memory_size, nullptr, 16), 4096u) << line;
    }
  }
  EXPECT_TRUE(stack);
  EXPECT_TRUE(relro);
}

// Thread-local variables are reached without a call that could allocate.
TEST(LeanTest, ThreadLocalsAreInitialExec) {
  for (const std::string& line : lines_of(readelf("--relocs"))) {
    EXPECT_LACKS(line, "R_X86_64_DTPMOD64");
    EXPECT_LACKS(line, "R_X86_64_TLSDESC");
  }
}

// A frame that begins with a copy of the return address is not where MTRACE_CALLER() looks. Those
// that take no caller of their own may have it.
TEST(LeanTest, FunctionsFindTheirCallersFrame) {
  const std::set<std::string> may = {
      "execl", "execlp", "execle", "prctl", "mtrace_look_at_system_call",
      // mmap's, which is given the caller.
      "_ZN6mtrace5entry12_GLOBAL__N_13mapEPFPvS2_miiilES2_miiilRKNS_6unwind9RegistersE"};
  std::string function;
  int looked_at = 0;
  for (const std::string& line : lines_of(
           output_of({"/usr/bin/objdump", "--disassemble", "--no-show-raw-insn", library()}))) {
    if (line.ends_with(">:")) {
      const size_t begin = line.find('<') + 1;
      function = line.substr(begin, line.size() - 2 - begin);
      ++looked_at;
    } else if (!may.contains(function)) {
      EXPECT_LACKS(line, "lea    0x8(%rsp),%r10") << function;
    }
  }
  EXPECT_GT(looked_at, 1000);
}

// IFUNC relocations of its own would run code before relocation is done.
TEST(LeanTest, NoIndirectFunctions) { EXPECT_LACKS(readelf("--relocs"), "IRELATIV"); }

// Two builds in different places are equal: packaging/reproducible.sh compares them whole.
TEST(LeanTest, NamesNoDirectoryOfItsBuild) {
  const std::string place = source_dir();
  for (const char* name :
       {"libmtrace.so", "memlog", "mtrace/memlog-http.so", "mtrace/memlog-replay"}) {
    const std::string file = read_file(build_dir() + "/" + name);
    EXPECT_HAS(file, "src/") << name;
    for (size_t at = 0; (at = file.find(place, at)) != std::string::npos; ++at) {
      // Not a part of another path, such as ./src/ where the sources are in /src.
      const char before = file[at - 1];
      const char after = file[at + place.size()];
      EXPECT_TRUE(std::isalnum(before) ||
                  (before != '\0' && std::strchr("./_-", before) != nullptr) ||
                  (after != '/' && after != '\0'))
          << name << ": " << file.substr(at, 100).c_str();
    }
  }
}

// Only what glibc 2.28 has, found by version: Debian 10, RHEL 8. The loader refuses a library that
// needs a version which libc lacks, be the reference weak or not.
TEST(LeanTest, RunsWithGlibc228) {
  for (const std::string& line :
       lines_of(output_of({"/usr/bin/nm", "--dynamic", "--undefined-only", library()}))) {
    const size_t at = line.find("@GLIBC_2.");
    if (at == std::string::npos) continue;
    EXPECT_LE(std::stoi(line.substr(at + 9)), 28) << line;
  }
}

// A reference to what only glibc has is weak: musl's loader refuses any other.
TEST(LeanTest, RunsWithMusl) {
  std::set<std::string> of_musl;
  for (const std::string& line : lines_of(
           output_of({"/usr/bin/nm", "--dynamic", "--defined-only", "/lib/ld-musl-x86_64.so.1"}))) {
    of_musl.insert(line.substr(line.rfind(' ') + 1));
  }
  size_t needed = 0;
  for (const std::string& line :
       lines_of(output_of({"/usr/bin/nm", "--dynamic", "--undefined-only", library()}))) {
    if (line.find(" U ") == std::string::npos) continue;
    ++needed;
    EXPECT_TRUE(of_musl.contains(base_name(line.substr(line.rfind(' ') + 1)))) << line;
  }
  EXPECT_GT(needed, 3u);
}

TEST(LeanTest, ToolCarriesTheMarkAgainstBeingTraced) {
  EXPECT_HAS(output_of({"/usr/bin/nm", "--dynamic", "--defined-only", memlog_tool()}),
             "mtrace_host_opt_out");
}

}  // namespace
}  // namespace mtrace::test
