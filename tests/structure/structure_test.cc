// How the sources may know each other, as doc/design.md says. Each rule is read off the #include
// lines and the words of src/.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "process.h"

namespace mtrace::test {
namespace {

struct Source {
  std::string path;    // relative to src/
  std::string folder;  // first component
  std::vector<std::string> lines;
};

const std::set<std::string> kLibrary = {"base", "unwind", "ledger", "report", "hook"};
const std::set<std::string> kTool = {"profile", "symbolize", "analyze", "export",
                                     "attach",  "web",       "cli"};

// What a folder may include of others, directly or through those it may include. Its own files
// and those of format/ for the ones named are always open.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"format", {}},
    {"base", {"format"}},
    {"unwind", {"base", "format"}},
    {"ledger", {"base", "format"}},
    {"report", {"ledger", "unwind", "base", "format"}},
    {"hook", {"report", "ledger", "unwind", "base", "format"}},
    {"profile", {"format"}},
    {"symbolize", {"profile", "format"}},
    {"analyze", {"profile", "format"}},
    {"export", {"analyze", "profile", "format"}},
    {"attach", {"format"}},
    {"web", {"export", "analyze", "profile", "format"}},
    {"cli", {"web", "attach", "export", "analyze", "symbolize", "profile", "format"}},
};

std::vector<Source> sources() {
  std::vector<Source> found;
  const std::filesystem::path root = source_dir() + "/src";
  for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = file.path().extension();
    if (extension != ".cc" && extension != ".h" && extension != ".def") continue;
    Source source;
    source.path = std::filesystem::relative(file.path(), root);
    source.folder = source.path.substr(0, source.path.find('/'));
    source.lines = lines_of(read_file(file.path()));
    found.push_back(std::move(source));
  }
  EXPECT_GT(found.size(), 10u);
  return found;
}

struct Include {
  std::string target;
  bool quoted;
};

std::vector<Include> includes(const Source& source) {
  static const std::regex kLine(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  for (const std::string& line : source.lines) {
    std::smatch match;
    if (std::regex_search(line, match, kLine)) found.push_back({match[2], match[1] == "\""});
  }
  return found;
}

// Lines with comments and string literals blanked, enough for looking for words.
std::vector<std::string> code_of(const Source& source) {
  std::vector<std::string> code;
  bool in_block = false;
  for (const std::string& line : source.lines) {
    std::string kept;
    bool in_string = false;
    for (size_t i = 0; i < line.size(); ++i) {
      if (in_block) {
        if (line.compare(i, 2, "*/") == 0) {
          in_block = false;
          ++i;
        }
      } else if (in_string) {
        if (line[i] == '\\') {
          ++i;
        } else if (line[i] == '"') {
          in_string = false;
        }
      } else if (line.compare(i, 2, "//") == 0) {
        break;
      } else if (line.compare(i, 2, "/*") == 0) {
        in_block = true;
        ++i;
      } else if (line[i] == '"') {
        in_string = true;
      } else {
        kept += line[i];
      }
    }
    code.push_back(kept);
  }
  return code;
}

void expect_words_only_in(const std::regex& words, const std::set<std::string>& folders,
                          const std::set<std::string>& of_folders) {
  for (const Source& source : sources()) {
    if (!of_folders.contains(source.folder) || folders.contains(source.folder)) continue;
    const std::vector<std::string> code = code_of(source);
    for (size_t i = 0; i < code.size(); ++i) {
      EXPECT_FALSE(std::regex_search(code[i], words))
          << "src/" << source.path << ":" << i + 1 << ": " << source.lines[i];
    }
  }
}

void expect_header_only_in(const std::regex& header, const std::set<std::string>& folders) {
  for (const Source& source : sources()) {
    if (folders.contains(source.folder)) continue;
    for (const Include& include : includes(source)) {
      EXPECT_FALSE(std::regex_match(include.target, header))
          << "src/" << source.path << " includes " << include.target;
    }
  }
}

std::set<std::string> all_folders() {
  std::set<std::string> all = {"format"};
  all.insert(kLibrary.begin(), kLibrary.end());
  all.insert(kTool.begin(), kTool.end());
  return all;
}

TEST(StructureTest, EveryFolderIsKnown) {
  for (const Source& source : sources()) {
    EXPECT_TRUE(kMayInclude.contains(source.folder)) << source.path;
  }
}

TEST(StructureTest, DirectionOfIncludes) {
  for (const Source& source : sources()) {
    const auto rule = kMayInclude.find(source.folder);
    if (rule == kMayInclude.end()) continue;
    for (const Include& include : includes(source)) {
      if (!include.quoted || include.target == "mtrace.h") continue;
      const std::string folder = include.target.substr(0, include.target.find('/'));
      EXPECT_TRUE(folder == source.folder || rule->second.contains(folder))
          << "src/" << source.path << " includes " << include.target;
    }
  }
}

TEST(StructureTest, QuotedIncludesNameFilesOfTheProject) {
  for (const Source& source : sources()) {
    for (const Include& include : includes(source)) {
      if (!include.quoted) continue;
      EXPECT_TRUE(std::filesystem::exists(source_dir() + "/src/" + include.target) ||
                  std::filesystem::exists(source_dir() + "/include/" + include.target))
          << "src/" << source.path << " includes " << include.target;
    }
  }
}

TEST(StructureTest, HeadersAreIncludedOnce) {
  for (const Source& source : sources()) {
    if (!source.path.ends_with(".h")) continue;
    EXPECT_NE(std::find(source.lines.begin(), source.lines.end(), "#pragma once"),
              source.lines.end())
        << source.path;
  }
}

// dwarf.h is the numbers of the standard and no more, so the unwinder may read them, too.
TEST(StructureTest, LibdwOnlyInSymbolize) {
  expect_header_only_in(std::regex("(libelf|gelf|nlist)\\.h|(elfutils|libdw.*)/.*"), {"symbolize"});
  expect_header_only_in(std::regex("dwarf\\.h"), {"symbolize", "unwind"});
}

TEST(StructureTest, PtraceOnlyInAttach) {
  expect_header_only_in(std::regex("sys/ptrace\\.h|linux/ptrace\\.h"), {"attach"});
  expect_words_only_in(std::regex("\\bptrace\\s*\\("), {"attach"}, all_folders());
}

TEST(StructureTest, SocketsOnlyInWeb) {
  expect_header_only_in(std::regex("sys/un\\.h|netinet/.*|arpa/.*|netdb\\.h|httplib\\.h"), {"web"});
  // attach makes none, but asks sockets of the process for their time limits.
  expect_header_only_in(std::regex("sys/socket\\.h"), {"web", "attach"});
  expect_words_only_in(std::regex("\\b(socket|socketpair|accept4?|listen)\\s*\\("), {"web"},
                       all_folders());
}

TEST(StructureTest, KernelIsEnteredOnlyInBase) {
  expect_words_only_in(std::regex("\\bsyscall\\s*\\(|\\basm\\b.*\\bsyscall\\b|\\bcall6\\s*\\(|"
                                  "\\bsys::call\\s*\\("),
                       {"base"}, kLibrary);
  for (const Source& source : sources()) {
    if (!kLibrary.contains(source.folder) || source.folder == "base") continue;
    for (const std::string& line : source.lines) {
      // The name of libc's function, which is hooked, is no instruction.
      EXPECT_FALSE(std::regex_search(line, std::regex("\"syscall[^\"]")))
          << source.path << ": " << line;
    }
  }
}

// Headers of the C++ library that need its compiled part, or that allocate.
TEST(StructureTest, LibraryUsesNoCxxRuntime) {
  const std::set<std::string> kAllowed = {
      "algorithm",        "array",   "atomic",   "bit",     "cerrno",     "climits",     "concepts",
      "csetjmp",          "csignal", "cstdarg",  "cstddef", "cstdint",    "cstdio",      "cstdlib",
      "cstring",          "ctime",   "iterator", "limits",  "new",        "type_traits", "utility",
      "initializer_list", "compare", "numeric",  "span",    "string_view"};
  for (const Source& source : sources()) {
    if (!kLibrary.contains(source.folder) && source.folder != "format") continue;
    for (const Include& include : includes(source)) {
      const bool cxx_header = !include.quoted && include.target.find('.') == std::string::npos &&
                              include.target.find('/') == std::string::npos;
      if (cxx_header) {
        EXPECT_TRUE(kAllowed.contains(include.target))
            << "src/" << source.path << " includes <" << include.target << ">";
      }
    }
  }
  expect_words_only_in(std::regex("\\b(throw|try|catch|dynamic_cast|typeid)\\b"), {},
                       {"base", "ledger", "report", "format"});
  expect_words_only_in(std::regex("\\bthread_local\\b"), {}, {"ledger", "report", "format"});
  expect_words_only_in(std::regex("\\b(try|catch|dynamic_cast|typeid)\\b"), {}, kLibrary);
}

TEST(StructureTest, OneListOfHookedFunctions) {
  // Options and hooks are declared once, in a .def file that is expanded.
  std::set<std::string> lists;
  for (const Source& source : sources()) {
    if (source.path.ends_with(".def")) lists.insert(source.path);
  }
  EXPECT_TRUE(lists.contains("format/options.def"));
}

TEST(StructureTest, FilesStayReadable) {
  for (const Source& source : sources()) {
    EXPECT_LE(source.lines.size(), 300u) << "src/" << source.path;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      EXPECT_EQ(source.lines[i].find('\t'), std::string::npos) << source.path << ":" << i + 1;
    }
  }
}

// What the browser is given has no formatter, and no build step that would make it smaller.
TEST(StructureTest, ScriptsAndStylesStayReadable) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/src/export/page")) {
    const std::vector<std::string> lines = lines_of(read_file(file.path()));
    EXPECT_LE(lines.size(), 300u) << file.path();
    for (const std::string& line : lines) {
      EXPECT_LE(line.size(), 100u) << file.path() << ": " << line;
      EXPECT_EQ(line.find('\t'), std::string::npos) << file.path() << ": " << line;
    }
    ++files;
  }
  EXPECT_GT(files, 5);
}

}  // namespace
}  // namespace mtrace::test
