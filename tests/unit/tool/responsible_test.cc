// Which frame of a stack is responsible, how stacks fold, and that groups add up.
#include "view/analyze/responsible.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "util/error.h"
#include "view/analyze/groups.h"

namespace mtrace::analyze {
namespace {

using List = profile::Frames::List;

using profile::Frame;
using profile::Module;
using profile::Place;

const std::vector<Module> kModules = {{.path = "/usr/bin/app"},
                                      {.path = "/lib/x86_64-linux-gnu/libc.so.6"},
                                      {.path = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"},
                                      {.path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"},
                                      {.path = "/usr/lib/nginx/modules/mod.so"},
                                      {.path = "/opt/app/lib/libjemalloc.so.2"}};
constexpr uint32_t kApp = 0;
constexpr uint32_t kLibc = 1;
constexpr uint32_t kCrypto = 2;
constexpr uint32_t kStd = 3;
constexpr uint32_t kPlugin = 4;
constexpr uint32_t kJemalloc = 5;

Frame in(uint32_t module, const std::string& function = "") {
  return {Place::kModule, module, 16, function, ""};
}
Frame inlined(const std::string& function) { return {Place::kInlined, 0, 0, function, ""}; }

std::string text_of(const std::vector<FoldedFrame>& lines, const std::vector<Frame>& frames) {
  std::string out;
  for (const FoldedFrame& line : lines) {
    const Frame& frame = frames[line.frame];
    out += fmt::format("{}{}{}",
                       out.empty()   ? ""
                       : line.inside ? " ["
                                     : " | ",
                       frame.function.empty() ? "?" : frame.function, line.inside ? "]" : "");
    if (line.frames > 1) out += fmt::format(" {}", line.frames);
  }
  return out;
}

std::string folded_text(const Responsible& responsible, const std::vector<Frame>& frames) {
  return text_of(responsible.folded(frames, kModules), frames);
}

// What a library did for code that the depth cut off is nobody's.
TEST(Responsible, IsMissingWhereTheDepthCutItOff) {
  const Responsible responsible;
  const std::vector<Frame> inside = {in(kStd, "operator new(unsigned long)"),
                                     inlined("std::__new_allocator<int>::allocate(unsigned long)"),
                                     in(kApp, "std::vector<int>::push_back(int&&)")};
  EXPECT_TRUE(responsible.missing(inside, kModules, 2));
  EXPECT_FALSE(responsible.missing(inside, kModules, 0)) << "a whole stack";
  const auto lines = responsible.folded(inside, kModules, 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].missing());
  EXPECT_TRUE(lines[1].inside);
  EXPECT_EQ(lines[1].frame, 2u);
  EXPECT_EQ(lines[1].frames, 2u);
  std::vector<Frame> own = inside;
  own.push_back(in(kApp, "put(int)"));
  EXPECT_FALSE(responsible.missing(own, kModules, 3));
  EXPECT_EQ(cut_text(2), "(cut at 2 frames, before own code)");

  Row row;
  row.frames = inside;
  row.depth = 2;
  row.cut = true;
  Groups groups(GroupBy::kFunction, std::make_shared<const Responsible>());
  EXPECT_EQ(groups.place(row, kModules), 0u);
  row.frames = std::vector<Frame>{in(kStd, "malloc")};
  EXPECT_EQ(groups.place(row, kModules), 0u) << "all of them are one group";
  EXPECT_EQ(groups.all()[0]->name, cut_text(2));
  row.frames = own;
  EXPECT_EQ(groups.place(row, kModules), 1u);
}

TEST(Responsible, IsTheInnermostFrameOfOwnCode) {
  const Responsible responsible;
  EXPECT_EQ(
      folded_text(responsible,
                  {in(kStd, "operator new(unsigned long)"),
                   inlined("std::__new_allocator<int>::allocate(unsigned long)"),
                   inlined("std::_Vector_base<int>::_M_allocate(unsigned long)"),
                   in(kApp, "std::vector<int>::push_back(int&&)"), in(kApp, "put(int)"),
                   in(kApp, "decltype(auto) std::apply<F, std::tuple<int> >(F&&)"),
                   in(kApp, "void std::__invoke_impl<void, F>(std::__invoke_other, F&&)"),
                   in(kApp, "serve(int)"), in(kApp, "main"), in(kLibc, "__libc_start_call_main"),
                   in(kLibc, "__libc_start_main_impl"), in(kApp, "_start")}),
      "put(int) [std::vector<int>::push_back(int&&)] 3 | void std::__invoke_impl<void, "
      "F>(std::__invoke_other, F&&) 2 | serve(int) | main");
}

TEST(Responsible, IsOwnCodeWithoutNames) {
  const Responsible responsible;
  EXPECT_EQ(responsible.of(List{in(kStd, "operator new(unsigned long)"), in(kStd), in(kCrypto),
                                in(kApp), in(kLibc)},
                           kModules),
            3u);
  // A plug-in that no library directory of the system holds is own code; an allocator never is.
  EXPECT_EQ(responsible.of(List{in(kJemalloc), in(kPlugin), in(kApp)}, kModules), 1u);
  // A name says more, even of a library of the system; own code's comes first.
  EXPECT_EQ(responsible.of(List{in(kJemalloc), in(kPlugin), in(kApp, "main")}, kModules), 2u);
  EXPECT_EQ(responsible.of(List{in(kCrypto), in(kCrypto, "X509_new"), in(kApp)}, kModules), 1u);
  EXPECT_EQ(responsible.of(List{in(kCrypto), in(kCrypto, "X509_new"), in(kApp, "main")}, kModules),
            2u);
  // What a just-in-time compiler made has a name, and is the program's.
  EXPECT_EQ(
      responsible.of(List{in(kLibc, "malloc"), {Place::kAddress, 0, 7, "handler", ""}}, kModules),
      1u);
}

// What allocates for its callers is known by its name; it is better than no name at all.
TEST(Responsible, IsWhoCallsAWrapper) {
  const Responsible responsible;
  for (const char* wrapper : {"xmalloc", "xrealloc", "sqlite3Malloc", "sqlite3DbMallocRawNN",
                              "ngx_calloc", "ap_calloc", "zone_malloc_or_die", "my_strdup"}) {
    EXPECT_EQ(
        responsible.of(List{in(kApp, wrapper), in(kApp, "parse"), in(kApp, "main")}, kModules), 1u)
        << wrapper;
    EXPECT_EQ(responsible.of(List{in(kApp, wrapper), in(kApp)}, kModules), 0u) << wrapper;
  }
  for (const char* other : {"allocate_session", "mallocate_all_of_it", "dump_malloc_stats",
                            "strdupes", "Malloced", "make_calloc_table"}) {
    EXPECT_EQ(responsible.of(List{in(kApp, other), in(kApp, "main")}, kModules), 0u) << other;
  }
}

TEST(Responsible, FallsBackToTheSystemThenToLibraries) {
  const Responsible responsible;
  EXPECT_EQ(
      responsible.of(List{in(kLibc, "malloc"), in(kLibc, "__strdup"), in(kCrypto, "CRYPTO_malloc"),
                          in(kCrypto, "X509_new"), in(kLibc, "start_thread")},
                     kModules),
      3u);
  EXPECT_EQ(responsible.of(List{in(kStd, "operator new(unsigned long)"),
                                in(kApp, "std::allocator<int>::allocate(unsigned long)"),
                                in(kApp, "std::vector<int>::push_back(int const&)")},
                           kModules),
            2u);
  EXPECT_EQ(responsible.of(List{in(kStd), in(kLibc, "call_init"), in(kLibc, "_dl_init")}, kModules),
            0u);
  EXPECT_EQ(responsible.of(List{in(kLibc, "malloc")}, kModules), 0u);
  EXPECT_EQ(responsible.of({}, kModules), 0u);
}

// Pictures show libraries of the system, and each function once.
TEST(Responsible, DrawsRecursionAsOneLine) {
  const Responsible responsible;
  const auto drawn = [&](const std::vector<Frame>& frames) {
    return text_of(responsible.drawn(frames, kModules), frames);
  };
  const std::vector<Frame> library = {in(kLibc, "malloc"),         in(kCrypto, "CRYPTO_zalloc"),
                                      in(kCrypto, "SSL_new"),      in(kApp, "connect"),
                                      in(kStd, "std::__invoke()"), in(kApp, "main")};
  EXPECT_EQ(drawn(library), "CRYPTO_zalloc | SSL_new | connect | std::__invoke() | main");
  EXPECT_EQ(folded_text(responsible, library), "connect [SSL_new] 2 | std::__invoke() | main");
  const auto own = [](const std::string& names) {
    std::vector<Frame> frames;
    for (const char name : names) frames.push_back(in(kApp, std::string(1, name)));
    return frames;
  };
  EXPECT_EQ(drawn(own("aaab")), "a 3 | b");
  EXPECT_EQ(drawn(own("xabababm")), "x | a | b 5 | m") << "from the outermost call on";
  EXPECT_EQ(drawn(own("xacabm")), "x | a 3 | b | m");
  EXPECT_EQ(drawn(own("m")), "m");
  EXPECT_EQ(drawn({}), "");
  EXPECT_EQ(drawn({in(kApp), in(kApp), in(kPlugin)}), "? 2 | ?");
}

TEST(Responsible, KnowsAllocatorsAndLibrariesByName) {
  const LibraryCode code;
  const auto of = [&](const std::string& function) {
    return code.of(List{in(kApp, function)}, 0, kModules);
  };
  for (const char* name :
       {"malloc", "__libc_malloc", "calloc", "reallocarray", "posix_memalign", "aligned_alloc",
        "operator new(unsigned long)", "operator new[](unsigned long, std::align_val_t)", "tc_new",
        "tc_malloc", "mi_malloc", "mi_heap_calloc", "je_malloc", "je_mallocx", "__rust_alloc",
        "__rdl_alloc", "alloc::alloc::alloc_zeroed", "PyMem_RawMalloc"}) {
    EXPECT_EQ(of(name), Code::kAllocator) << name;
  }
  for (const char* name :
       {"std::vector<int>::push_back(int const&)",
        "std::operator<< <char>(int)",
        "__gnu_cxx::new_allocator<int>::allocate(long)",
        "__cxa_allocate_exception",
        "std::enable_if<true, int>::type std::__invoke_r<int>(int)",
        "boost::container::vector<int>::priv_insert()",
        "absl::lts_20220623::container_internal::raw_hash_set<A>::resize(unsigned long)",
        "absl::flat_hash_map<int, int>::operator[](int)",
        "g_malloc",
        "g_malloc0_n",
        "g_slice_alloc",
        "g_strdup_printf",
        "g_hash_table_new_full",
        "strdup",
        "__strdup",
        "vasprintf",
        "fopen64",
        "_IO_file_doallocate",
        "core::ptr::drop_in_place<alloc::string::String>",
        "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
        "alloc::raw_vec::RawVec<T,A>::grow_one",
        "JS:~allocUnsafeSlow node:buffer:414:50",
        "void java.nio.DirectByteBuffer.<init>(int)",
        "Interpreter"}) {
    EXPECT_EQ(of(name), Code::kLibrary) << name;
  }
  for (const char* name :
       {"main", "f(std::string)", "mystd::f()", "std_like(int)", "std::string name(int)",
        "my::operator<<(std::ostream&, int)", "pool<std::less<int>>::get()", "core::Engine::run()",
        "alloc::Arena::take()", "Session::operator new(unsigned long)", "my_malloc",
        "std::__detail::_MakeUniq<T>::__single_object make<T>()", "g_application_main",
        "absl_user::f()", "JS:~onUpload /srv/node:1/leak.js:2:18", "void Leak.onUpload(int)",
        "java.lang.String Leak.name(java.lang.String)",
        "main::{lambda(std::string)#1}::operator()(std::string) const"}) {
    EXPECT_EQ(of(name), Code::kOwn) << name;
  }
}

TEST(Responsible, IsWhatTheUserSays) {
  LibraryCode code;
  code.library().add_pattern("^pool_");
  code.library().add("lib.txt", "# ours\nmodule:/mod\\.so$\n\nsource:^arena\\.h\n");
  code.own().add_pattern("^pool_open$");
  code.own().add_pattern("function:^std::vector");
  const Responsible responsible(std::move(code));
  EXPECT_EQ(responsible.of(List{in(kLibc, "malloc"),
                                in(kApp, "pool_take"),
                                in(kPlugin, "f"),
                                {Place::kModule, kApp, 1, "g", "arena.h:9"},
                                in(kApp, "main")},
                           kModules),
            4u);
  EXPECT_EQ(responsible.of(List{in(kApp, "pool_open"), in(kApp, "main")}, kModules), 0u);
  EXPECT_EQ(
      responsible.of(List{in(kLibc, "malloc"), in(kApp, "std::vector<int>::resize()")}, kModules),
      1u);
  FramePatterns patterns;
  try {
    patterns.add("lib.txt", "function:^a\nleak:b\n");
    FAIL();
  } catch (const util::FormatError& error) {
    EXPECT_HAS(std::string(error.what()), "lib.txt:2") << error.what();
  }
}

// Whatever groups stacks, no number is lost.
TEST(Groups, AddUpToTheReport) {
  for (const char* file : {"app-4600-2.memlog", "app-4711-2.memlog", "app-4900-1.memlog"}) {
    for (const GroupBy by :
         {GroupBy::kFunction, GroupBy::kFile, GroupBy::kLine, GroupBy::kModule}) {
      profile::Memlog memlog = profile::read_path(test::source_dir() + "/tests/golden/" + file);
      const Table table = Table::of(memlog);
      const Table groups = grouped(table, by, std::make_shared<Responsible>());
      for (const std::string& kind : table.kinds()) {
        Row all;
        Row sum;
        size_t stacks = 0;
        size_t grouped_stacks = 0;
        for (const Row& row : table.rows()) {
          if (row.kind != kind) continue;
          add(all, row, Combine::kStacks);
          ++stacks;
        }
        for (const Row& row : groups.rows()) {
          if (row.kind != kind) continue;
          add(sum, row, Combine::kStacks);
          ASSERT_NE(row.group, nullptr);
          grouped_stacks += row.group->stacks;
        }
        EXPECT_EQ(grouped_stacks, stacks);
        EXPECT_EQ(sum.bytes, all.bytes);
        EXPECT_EQ(sum.blocks, all.blocks);
        EXPECT_EQ(sum.live, all.live);
        EXPECT_EQ(sum.allocations, all.allocations);
        EXPECT_EQ(sum.allocated_bytes, all.allocated_bytes);
        EXPECT_EQ(sum.frees, all.frees);
        EXPECT_EQ(sum.temporary, all.temporary);
        EXPECT_EQ(sum.slack, all.slack);
        EXPECT_EQ(sum.peak, all.peak);
        EXPECT_EQ(sum.age, all.age);
        EXPECT_EQ(sum.lifetimes.sum, all.lifetimes.sum);
      }
    }
  }
}

}  // namespace
}  // namespace mtrace::analyze
