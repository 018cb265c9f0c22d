// memlog anonymise: no text that tells of a program is left, and all numbers are.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "model/profile/pseudonyms.h"
#include "model/symbols/module_symbols.h"
#include "model/symbols/symbol_files.h"
#include "resolve_fixture.h"
#include "tool_test.h"
#include "util/keyed_hash.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

namespace fs = std::filesystem;

// What must be hidden has "zq" in it, which no pseudonym and no word of the format has.
constexpr char kSecretReport[] = R"(# memlog 2
# program: /opt/zqcorp/bin/zqserver
# command: /opt/zqcorp/bin/zqserver --zqpassword=1 '' plain\x20zqword
# pid: 4711
# seq: 2
# trigger: signal
# label: zqlabel
# started: 2026-11-20T20:15:00.000000Z
# taken: 2026-11-20T20:15:32.123456Z
# delta: +300 bytes +6 blocks
# live: 196716 bytes 45 blocks
# lost: frames=3 stacks=2 blocks=1 inflight=0
# zqline: zqvalue
+100	blocks=+2	live=100	call=malloc	zqfield=zqvalue	stack=6d656d6c6f672031
	zqcorp::Cache::put(std::string const&, int)	zqcache.cc:31	(/opt/zqcorp/bin/zqserver+0x2000)
	std::vector<zqcorp::Order, std::allocator<zqcorp::Order> >::push_back(zqcorp::Order&&)	zqvector.h:12	(inlined)
	zqtail	(/opt/zqcorp/lib/libzq.so.5.2+0x15)
	main	zqmain.c:41	(/opt/zqcorp/bin/zqserver+0x1105)
+100	blocks=+2	live=100	call=zqmalloc	stack=c39ef499fb80b593
	zqjit	(0x7f21c0a00123)
	zqquery	zqapp.py:7	(/srv/zqapp.py+0x77)
	json.loads	__init__.py:346	(/usr/lib/python3.11/json/__init__.py+0x1)
	zqinlined	zqgmem.h:1	(inlined)
	zqmid	(/usr/lib/zqprivate/libc.so.6+0x1)
	zqpackage	zq.py:1	(/usr/lib/python3/dist-packages/zq.py+0x1)
+100	blocks=+2	live=100	stack=a2bba8d0e469447f
	inlined_in_glib	gmem.h:1	(inlined)
	g_realloc	gmem.c:164	(/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0+0x5f3e1)
	...
@zqtexture	+1048576	blocks=+1	prot=rw-	flags=private,zq	stack=10fd6be559d0f405
	std::zq::no()	(/opt/zqcorp/bin/zqserver+0x2001)
@mmap	+4096	blocks=+1	prot=rw-	flags=private,anonymous
# note: zqnote of the program
# note: not covered: zqmalloc of /opt/zqcorp/bin/zqserver
# kind: zqtexture 1048576 bytes 1 blocks
# calls: malloc=4 zqcall=2
# heap: resident=8192 live=100 free=8000 empty=4096 arenas=0 arenas-empty=0
# heap-stacks: c39ef499fb80b593=4096 10fd6be559d0f405=4096
# region: resident=4096 size=8192 malloc
# region: resident=4096 size=8192 /opt/zqcorp/data.zq
# region: resident=4096 size=8192 [anon:zqarena]
# jit-dump: 77 bytes /tmp/zq/jit-4711.dump
# module: /opt/zqcorp/bin/zqserver build-id=aa01bb02cc03dd04ee05ff0600aa77cc88990011 base=0x7f21c0a00000
# module: /opt/zqcorp/lib/libzq.so.5.2#2 base=0x7f21c0b00000
# module: /srv/zqapp.py base=0x0 language=python
# module: /usr/lib/python3.11/json/__init__.py base=0x0 language=python
# module: /usr/lib/python3/dist-packages/zq.py base=0x0 language=python
# module: /usr/lib/x86_64-linux-gnu/libglib-2.0.so.0 build-id=5f1e base=0x7f21c0a00000
# host: zqhost boot-id=6a0e8a3e-0000-4000-8000-000000000000 arch=x86_64
# rss: 900000000 bytes
# resolved: yes
# library: mtrace 0.2.0 allocator=libzqalloc.so.1 MTRACE_DEPTH=10 MTRACE_OUTPUT=/srv/zq/%p zqoption=1
# end
)";

class Anonymise : public Resolve {
 protected:
  // Anonymises these files into DIR/NAME.
  Outcome anonymise(const std::string& name, std::vector<std::string> words) {
    words.insert(words.begin(), {"anonymise", "-o", directory_ / name});
    return memlog(words);
  }
  // The content of the only file there whose name has this text.
  std::string only(const std::string& name, const std::string& part = ".memlog") const {
    std::vector<std::string> found;
    for (const auto& file : fs::directory_iterator(directory_ / name)) {
      if (file.path().filename().native().find(part) != std::string::npos) {
        found.push_back(file.path());
      }
    }
    EXPECT_EQ(found.size(), 1U) << name;
    return found.empty() ? "" : found[0];
  }
  std::string secret_report() {
    const std::string path = directory_ / "zqserver-4711-2.memlog";
    write_file(path, kSecretReport);
    return path;
  }
};

TEST_F(Anonymise, LeavesNoText) {
  const std::string report = secret_report();
  const Outcome result = anonymise("out", {report});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string path = only("out");
  const std::string text = read_file(path);
  EXPECT_EQ(path.find("zq"), std::string::npos);
  EXPECT_EQ(text.find("zq"), std::string::npos) << text;
  for (const char* gone : {"aa01bb02", "6a0e8a3e", "c39ef499fb80b593", "plain", "opt", "srv"}) {
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << '\n' << text;
  }
  // What is no secret is as it was.
  for (const char* kept :
       {"\tg_realloc\tgmem.c:164\t(/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0+0x5f3e1)\n",
        "\tinlined_in_glib\tgmem.h:1\t(inlined)\n",
        "\tjson.loads\t__init__.py:346\t(/usr/lib/python3.11/json/__init__.py+0x1)\n",
        " build-id=5f1e base=0x7f21c0a00000\n", "\tcall=malloc\t", "malloc=4",
        "@mmap\t+4096\tblocks=+1\tprot=rw-\tflags=private,anonymous\n", "# rss: 900000000 bytes\n",
        "# heap: resident=8192 live=100 free=8000 empty=4096 arenas=0 arenas-empty=0\n",
        "# region: resident=4096 size=8192 malloc\n", "# library: mtrace 0.2.0 allocator=p_",
        " MTRACE_DEPTH=10 MTRACE_OUTPUT=w_", "# note: not covered: n_"}) {
    EXPECT_NE(text.find(kept), std::string::npos) << kept << '\n' << text;
  }
  const auto has = [&](const std::string& regex) {
    return std::regex_search(text, std::regex(regex));
  };
  // A name for each part, the same wherever the part stands, and suffixes.
  EXPECT_TRUE(
      has("# program: /p_[0-9a-f]{12}/(p_[0-9a-f]{12})/p_[0-9a-f]{12}/p_[0-9a-f]{12}\n"
          "# command: /p_[0-9a-f]{12}/\\1/[^ ]+ w_[0-9a-f]{12} '' w_[0-9a-f]{12}\n"));
  EXPECT_TRUE(has("f_[0-9a-f]{12}\tp_[0-9a-f]{12}\\.cc:31\t"));
  EXPECT_TRUE(has("/p_[0-9a-f]{12}\\.so\\.5\\.2#2 base=0x7f21c0b00000\n"));
  EXPECT_TRUE(has("\tstd::vector<(t_[0-9a-f]{12}), std::allocator<\\1> >::push_back\\(\\1&&\\)\t"));
  EXPECT_TRUE(has("\tmain\tp_[0-9a-f]{12}\\.c:41\t"));
  EXPECT_TRUE(has("@k-([0-9a-f]{12})\t(.|\n)*# kind: k-\\1 1048576 bytes 1 blocks\n"));
  // The stacks that keep the heap resident have their new ids.
  EXPECT_TRUE(
      has("call=f_[0-9a-f]{12}\tstack=([0-9a-f]{16})\n(.|\n)*"
          "# heap-stacks: \\1=4096 [0-9a-f]{16}=4096\n"));
}

// Removes all texts from a value.
void drop_texts(nlohmann::json& value) {
  for (auto& one : value) {
    if (one.is_string()) one = "";
    if (one.is_structured()) drop_texts(one);
  }
}

TEST_F(Anonymise, NumbersAndDifferencesStay) {
  const std::vector<std::string> before = {golden("app-4711-1.memlog"),
                                           golden("app-4711-2.memlog")};
  ASSERT_EQ(anonymise("out", before).status, 0);
  const std::vector<std::string> after = {only("out", "-1.memlog"), only("out", "-2.memlog")};
  for (const std::vector<std::string>& view :
       {std::vector<std::string>{"diff", "--json"}, {"show", "--json"}}) {
    nlohmann::json values[2];
    for (int i = 0; i < 2; ++i) {
      std::vector<std::string> words = view;
      words.insert(words.end(), (i == 0 ? before : after).begin(), (i == 0 ? before : after).end());
      const Outcome shown = memlog(words);
      ASSERT_EQ(shown.err, "");
      values[i] = nlohmann::json::parse(shown.out);
      drop_texts(values[i]);
    }
    EXPECT_GT(values[0].dump().size(), 300U);
    EXPECT_EQ(values[0], values[1]);
  }
}

TEST_F(Anonymise, KeysMakeTheSameNames) {
  const std::string report = secret_report();
  const std::string key = directory_ / "key";
  const std::string map = directory_ / "map";
  ASSERT_EQ(anonymise("a", {"--key", key, "--map", map, report}).status, 0);
  ASSERT_EQ(anonymise("b", {"--key", key, report}).status, 0);
  ASSERT_EQ(anonymise("c", {report}).status, 0);
  EXPECT_EQ(read_file(only("a")), read_file(only("b")));
  EXPECT_NE(read_file(only("a")), read_file(only("c")));
  for (const std::string& file : {key, map}) {
    struct stat state = {};
    ASSERT_EQ(::stat(file.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777, 0600U) << file;
  }
  // The map leads back.
  const std::string names = read_file(map);
  const std::string text = read_file(only("a"));
  std::smatch label;
  ASSERT_TRUE(std::regex_search(text, label, std::regex("# label: (l_[0-9a-f]{12})\n")));
  EXPECT_NE(names.find(label.str(1) + "\tzqlabel\n"), std::string::npos) << names;
  EXPECT_NE(names.find("\tstack=c39ef499fb80b593\n"), std::string::npos) << names;

  write_file(key, "12ab");
  EXPECT_EQ(
      anonymise("d", {"--key", key, report}).err,
      fmt::format("memlog: anonymise: --key {}: is no key: 32 hex digits, as this option makes "
                  "them\n",
                  key));
}

TEST_F(Anonymise, KeepsWhatIsAskedFor) {
  const std::string report = secret_report();
  ASSERT_EQ(anonymise("a", {"--keep", "/libzq", report}).status, 0);
  write_file(directory_ / "list", "# ours\n\n/libzq\nbin/zqserver$\n");
  ASSERT_EQ(anonymise("b", {"--keep", directory_ / "list", report}).status, 0);
  const std::string a = read_file(only("a"));
  const std::string b = read_file(only("b", "zqserver-4711-2.memlog"));
  EXPECT_NE(a.find("\tzqtail\t(/opt/zqcorp/lib/libzq.so.5.2+0x15)\n"), std::string::npos) << a;
  EXPECT_EQ(a.find("zqserver"), std::string::npos);
  EXPECT_NE(b.find("\tzqcorp::Cache::put(std::string const&, int)\tzqcache.cc:31\t"),
            std::string::npos)
      << b;
  EXPECT_EQ(b.find("zqquery"), std::string::npos);
  EXPECT_EQ(anonymise("c", {"--keep", "(", report}).status, 2);
}

TEST_F(Anonymise, NeverPassesADamagedFile) {
  const std::string report = secret_report();
  write_file(directory_ / "cut.memlog", std::string(kSecretReport).substr(0, 900));
  write_file(directory_ / "cut.timeline", "# timeline 1\n# program: /zq\n");
  const Outcome result =
      anonymise("out", {directory_ / "cut.memlog", directory_ / "cut.timeline", report});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, fmt::format("{}/out/: 1 file\n", directory_.path()));
  only("out", "");
  const Outcome again = anonymise("out", {"--key", directory_ / "key", report, report});
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("two files are called zqserver-4711-2.memlog"), std::string::npos);
  fs::rename(directory_ / "cut.memlog", directory_ / "x.memlog");
  const Outcome packed =
      memlog({"pack", "--anonymise", "-o", directory_ / "a.tar.zst", directory_ / "x.memlog"});
  EXPECT_EQ(packed.status, 2);
  EXPECT_FALSE(fs::exists(directory_ / "a.tar.zst"));
}

constexpr char kSecretProgram[] = R"(
#include <pthread.h>
#include <filesystem>
#include <vector>
#include "mtrace.h"
namespace zqxvkjshop {
struct zqxvkjOrder { char text[40]; };
__attribute__((noinline)) void zqxvkjremember(std::vector<zqxvkjOrder>& all) { all.push_back(zqxvkjOrder()); }
}
int main() {
  pthread_setname_np(pthread_self(), "zqxvkjthread");
  static std::vector<zqxvkjshop::zqxvkjOrder> all;
  for (int i = 0; i < 100; ++i) zqxvkjshop::zqxvkjremember(all);
  mtrace_note("zqxvkjnote of the program");
  mtrace_report_label("zqxvkjlabel");
  std::filesystem::copy_file("data/live", "data/zqxvkj.ledger");
}
)";

// A report, an event log and a ledger, alone and in an archive.
TEST_F(Anonymise, RecordedData) {
  const std::string home = directory_ / "zqxvkjhome";
  fs::create_directories(home + "/data");
  write_file(home + "/zqxvkjprogram.cc", kSecretProgram);
  shell("cd {0} && {1} -g -O2 -I{2}/include -o zqxvkjprogram zqxvkjprogram.cc", home, compiler(),
        source_dir());
  shell(
      "cd {0} && env LD_PRELOAD={1} MTRACE_OUTPUT={0}/data/ MTRACE_LEDGER={0}/data/live "
      "MTRACE_EVENTS=1 MTRACE_EXIT_REPORT=0 MTRACE_RESOLVER={2} MTRACE_EXIT_WAIT=600 "
      "./zqxvkjprogram zqxvkjargument",
      home, library(), memlog_tool());
  const std::string id = build_id_of(home + "/zqxvkjprogram");
  const std::string raw_id = util::read_bytes(id).value_or("");
  // (Two letters would be found by chance in compressed content.)
  std::vector<std::string> secrets = {"zqxvkj", id, raw_id,
                                      strip_end(shell("cat /proc/sys/kernel/random/boot_id"))};
  // Of paths: every two folders that follow each other, and folders whose names are not words,
  // which readable names of the distribution have, too: check, build.
  for (const std::string& path : {directory_.path(), source_dir()}) {
    std::string before;
    for (const std::string_view part : util::split(path, '/')) {
      if (!before.empty()) secrets.push_back(fmt::format("{}/{}", before, part));
      if (part.size() > 4 && std::ranges::any_of(part, [](char c) { return !isalpha(c); })) {
        secrets.emplace_back(part);
      }
      before = part;
    }
  }
  const std::string host = strip_end(shell("uname -n"));
  if (host.size() > 4) secrets.push_back(host);
  const auto expect_hidden = [&](const std::string& content, const std::string& where) {
    EXPECT_FALSE(content.empty()) << where;
    for (const std::string& secret : secrets) {
      EXPECT_EQ(content.find(secret), std::string::npos) << secret << " in " << where;
    }
  };
  const std::string key = directory_ / "key";
  const Outcome made = anonymise("out", {"--key", key, home + "/data"});
  ASSERT_EQ(made.status, 0) << made.err;
  // Content of frames of zstd, too.
  const std::string all = shell(
      "cd {}/out && find . && find . -type f | while read -r i; do cat $i; zstdcat -f $i; done",
      directory_.path());
  expect_hidden(all, "out");

  // Names in the event log are those of the reports.
  const std::string events = memlog({"events", only("out", ".events")}).out;
  const std::string report = read_file(only("out", "-1.memlog"));
  expect_hidden(events, "events");
  std::smatch stack;
  ASSERT_TRUE(std::regex_search(
      report, stack,
      std::regex(
          "stack=([0-9a-f]{16})\n(?:\t[^f].*\n)*\t(f_[0-9a-f]{12})\tp_[0-9a-f]{12}\\.cc:8\t")))
      << report;
  const size_t at = events.find("stack=" + stack.str(1));
  ASSERT_NE(at, std::string::npos) << events;
  EXPECT_NE(events.substr(at, events.find('\n', at) - at).find(" < " + stack.str(2) + " < main < "),
            std::string::npos)
      << events.substr(at, 2000);
  EXPECT_NE(events.find(" n_"), std::string::npos);
  EXPECT_NE(events.find(" l_"), std::string::npos);
  EXPECT_NE(events.find("thread-begin c_"), std::string::npos) << events.substr(0, 200);
  // The numbers of all events are those of the original.
  const auto numbers = [](const std::string& log) {
    const Outcome out = memlog(
        {"sql", "--format", "csv", "--no-resolve",
         "select event, at, kind, thread, call, block, size, usable, number from events", log});
    EXPECT_EQ(out.status, 0) << out.err;
    return out.out;
  };
  std::string original;
  for (const auto& file : fs::directory_iterator(home + "/data")) {
    if (file.path().extension() == ".events") original = file.path();
  }
  EXPECT_EQ(numbers(only("out", ".events")), numbers(original));

  const std::string archive = directory_ / "a.tar.zst";
  const Outcome packed =
      memlog({"pack", "--anonymise", "--key", key, "-o", archive, home + "/data"});
  ASSERT_EQ(packed.status, 0) << packed.err;
  expect_hidden(shell("zstdcat {}", archive), "archive");
  ASSERT_EQ(memlog({"unpack", "-o", directory_ / "unpacked", archive}).status, 0);
  EXPECT_EQ(memlog({"events", only("unpacked", ".events")}).out, events);
}

// Names of one event log do not go when another one of the program comes.
TEST_F(Anonymise, SymbolsAreAdded) {
  const std::string file = directory_ / "symbols";
  const std::string id = "0123456789";
  symbols::add_made_symbols(file, id, {{0x1010, "f_a"}, {0x1020, "f_b"}});
  symbols::add_made_symbols(file, id, {{0x1030, "f_c"}});
  symbols::ModuleSymbols module({}, file, id);
  EXPECT_EQ(module.finding(), symbols::Finding::kFound);
  for (const auto& [address, name] :
       {std::pair(0x1010, "f_a"), std::pair(0x1020, "f_b"), std::pair(0x1030, "f_c")}) {
    const symbols::SourceFrames frames = module.frames(static_cast<uint64_t>(address));
    ASSERT_EQ(frames.size(), 1U) << name;
    EXPECT_EQ(frames[0].function.text(), name);
  }
  EXPECT_TRUE(module.frames(0x1011).empty());
}

TEST(PseudonymsTest, HashIsSipHash) {
  // The example of the paper, appendix A.
  util::HashKey key;
  std::string text;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  for (char c = 0; c < 15; ++c) text += c;
  EXPECT_EQ(util::keyed_hash(key, text), 0xa129ca6149be45e5U);
  EXPECT_EQ(util::keyed_hash(key, ""), 0x726fdb47dd0e0e31U);
}

TEST(PseudonymsTest, FunctionsOfTheLibraryStayReadable) {
  profile::Pseudonyms names(util::HashKey{});
  const auto shape = [&](const std::string& name) {
    return std::regex_replace(names.function(name), std::regex("_[0-9a-f]{12}"), "_#");
  };
  for (const auto& [name, expected] : std::vector<std::pair<std::string, std::string>>{
           {"main", "main"},
           {"acme::run(int)", "f_#"},
           {"std::map<int, acme::X>::operator[](int const&)",
            "std::map<int, t_#>::operator[](int const&)"},
           {"acme::X& std::vector<acme::X>::emplace_back<acme::X>(acme::X&&)",
            "t_#& std::vector<t_#>::emplace_back<t_#>(t_#&&)"},
           {"std::string acme::name<int>()", "f_#"},
           {"std::hash<acme::X>::operator()(acme::X const&) const",
            "std::hash<t_#>::operator()(t_# const&) const"},
           {"std::less<acme::X>::operator acme::Y() const", "f_#"},
           {"std::acme::run()", "f_#"},
           {"std::chrono::_V2::steady_clock::now()", "std::chrono::_V2::steady_clock::now()"},
           {"std::basic_ostream<char>& std::operator<< <std::char_traits<char> >(acme::X)",
            "std::basic_ostream<char>& std::operator<< <std::char_traits<char> >(t_#)"},
           {"acme::fixed<acme::text<5ul>{char [5]{(char)115}}>::get()", "f_#"},
           {"std::foo<acme::text<5ul>{char [5]{(char)115}}>()", "f_#"},
           {"std::vector<acme::Map<int>::Node>::grow() [clone .cold]",
            "std::vector<t_#<int>::t_#>::grow() [clone .cold]"},
           {"std::_Function_handler<void (), acme::f()::{lambda()#1}>::_M_invoke(std::_Any_data "
            "const&)",
            "std::_Function_handler<void (), t_#()::{lambda()#1}>::_M_invoke(std::_Any_data "
            "const&)"},
           {"acme::f(std::string) const::{lambda()#1}::operator()() const", "f_#"},
           {"operator new(unsigned long)", "operator new(unsigned long)"},
           {"operator new(unsigned long, acme::Arena&)", "f_#"}}) {
    EXPECT_EQ(shape(name), expected);
  }
}

TEST(PseudonymsTest, LibrariesOfTheDistribution) {
  const profile::Pseudonyms names(util::HashKey{});
  for (const char* path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6.0.30",
        "/usr/lib64/libglib-2.0.so.0 (deleted)", "/usr/lib/libpython3.11.so.1.0", "[vdso]",
        "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/usr/bin/python3.11",
        "/usr/lib/python3.11/json/decoder.py", "<frozen importlib._bootstrap>",
        "/usr/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so"}) {
    EXPECT_TRUE(names.keeps(path)) << path;
  }
  for (const char* path :
       {"/opt/acme/libc.so.6", "/usr/lib/acme/libc.so.6", "/usr/lib/libacme.so.1", "libc.so.6",
        "/usr/lib/python3/dist-packages/acme.py", "/usr/lib/python3.11/acme/secret.py",
        "<frozen acme>", "/usr/bin/acme", "/home/x/usr/lib/libc.so.6", "/usr/lib/libcacme.so"}) {
    EXPECT_FALSE(names.keeps(path)) << path;
  }
}

}  // namespace
}  // namespace mtrace::test
