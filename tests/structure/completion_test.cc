// What the shells offer when one completes a command line of memlog.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "expect.h"
#include "process.h"

namespace mtrace::test {
namespace {

std::string script(const std::string& shell) {
  return build_dir() + "/share/completion/memlog." + shell;
}

Result run_in(const TemporaryDirectory& directory, const std::vector<std::string>& argv) {
  Command command;
  command.argv = {"/usr/bin/env"};
  command.argv.insert(command.argv.end(), argv.begin(), argv.end());
  command.env = plain_environment(directory.path());
  command.env["PATH"] = build_dir() + ':' + command.env["PATH"];  // what the scripts call
  command.directory = directory.path();
  return run(command);
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (const std::string& line : lines_of(text)) {
    if (!line.empty()) words.insert(line.substr(0, line.find('\t')));
  }
  return words;
}

std::set<std::string> options_of(const std::string& command) {
  const TemporaryDirectory home;
  const std::string help = run_in(home, {memlog_tool(), "help", command}).out;
  std::set<std::string> options = {"--help"};
  for (const std::string& option :
       matches(help, "(?m)^  (?:-[a-z], )?(--[a-z-]+(?:=[a-z]+)?)(?: \\S+)?$")) {
    options.insert(option);
  }
  return options;
}

class CompletionTest : public ::testing::Test {
 protected:
  // What bash offers for the last of the words; `memlog` is the first.
  std::set<std::string> bash(std::vector<std::string> words) {
    std::vector<std::string> argv = {
        "bash", "-c",
        "source \"$0\" && COMP_WORDS=(memlog \"$@\") COMP_CWORD=$# && _memlog && "
        "printf '%s\\n' \"${COMPREPLY[@]}\"",
        script("bash")};
    argv.insert(argv.end(), words.begin(), words.end());
    return offered(argv);
  }
  std::set<std::string> fish(const std::string& line) {
    return offered({"fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]",
                    script("fish"), line});
  }
  // What zsh is given to offer, and where it goes on.
  std::set<std::string> zsh(std::vector<std::string> words) {
    std::vector<std::string> argv = {
        "zsh",
        "-f",
        "-c",
        "compdef() { }; _describe() { print -l -- ${(P)${@[-1]}} }; "
        "_files() { print -- files $2 }; _normal() { print -- normal $CURRENT $words }; "
        "source $1; shift; words=(memlog \"$@\") CURRENT=$(($# + 1)); _memlog",
        "-",
        script("zsh")};
    argv.insert(argv.end(), words.begin(), words.end());
    return offered(argv);
  }
  std::set<std::string> offered(const std::vector<std::string>& argv) {
    Result result = run_in(home_, argv);
    expect_exit(result);
    EXPECT_EQ(result.err, "");
    return words_of(result.out);
  }

  TemporaryDirectory home_;
  const std::set<std::string> commands_ = {"run",    "attach",  "detach", "report", "status",
                                           "show",   "tree",    "diff",   "leaks",  "check",
                                           "export", "resolve", "decode", "serve",  "help"};
};

using Set = std::set<std::string>;

TEST_F(CompletionTest, BashOffersCommands) {
  const Set first = bash({""});
  for (const std::string& command : commands_) EXPECT_EQ(first.count(command), 1u) << command;
  EXPECT_EQ(bash({"re"}), (Set{"recover", "replay", "report", "resolve"}));
  EXPECT_EQ(bash({"help", "o"}), (Set{"options"}));
}

TEST_F(CompletionTest, BashOffersTheOptionsOfEachCommand) {
  for (const std::string& command : commands_) {
    EXPECT_EQ(bash({command, "--"}), options_of(command)) << command;
  }
  EXPECT_EQ(bash({"show", "-n", "3", "--sy"}), (Set{"--symbols", "--sysroot"}));
}

TEST_F(CompletionTest, BashOffersChoices) {
  EXPECT_EQ(bash({"export", "-f", "p"}), (Set{"pprof"}));
  EXPECT_EQ(bash({"diff", "--by", ""}), (Set{"blocks", "bytes"}));
  EXPECT_EQ(bash({"diff", "--by", "="}), (Set{"blocks", "bytes"}));
  EXPECT_EQ(bash({"show", "--color", "=", "al"}), (Set{"always"}));
  EXPECT_EQ(bash({"show", "--depth", ""}), Set{});
}

// What is offered is what is taken: of a word that is no choice the message lists them all.
TEST_F(CompletionTest, ChoicesAreThoseThatTheProgramTakes) {
  write_file(home_ / "a.memlog", "");
  for (const auto& [command, option] :
       std::vector<std::pair<std::string, std::string>>{{"show", "--by"},
                                                        {"tree", "--by"},
                                                        {"diff", "--by"},
                                                        {"show", "--color"},
                                                        {"export", "--format"}}) {
    std::vector<std::string> argv = {memlog_tool(), command, option, "?", "a.memlog"};
    if (command == "diff") argv.push_back("a.memlog");
    const Result result = expect_exit(run_in(home_, argv), 2);
    const std::string list = " is not one of ";
    const size_t at = result.err.find(list);
    ASSERT_NE(at, std::string::npos) << result.err;
    Set told;
    const std::string words = result.err.substr(at + list.size());
    for (const std::string& word : matches(words, "([a-z0-9]+)")) told.insert(word);
    EXPECT_EQ(bash({command, option, ""}), told) << command;
  }
}

TEST_F(CompletionTest, BashOffersFiles) {
  write_file(home_ / "app-1-1.memlog", "");
  write_file(home_ / "app 2.memlog", "");
  write_file(home_ / "app-1-2.memlog.zst", "");
  write_file(home_ / "app.txt", "");
  write_file(home_ / "app.zst", "");
  std::filesystem::create_directory(home_ / "apps");
  EXPECT_EQ(bash({"show", "ap"}),
            (Set{"app-1-1.memlog", "app-1-2.memlog.zst", "app 2.memlog", "apps"}));
  EXPECT_EQ(bash({"decode", "app.t"}), (Set{"app.txt"}));
  EXPECT_EQ(bash({"show", "--symbols", "ap"}), (Set{"apps"}));
  EXPECT_EQ(bash({"show", "--suppressions", "app."}), (Set{"app.txt", "app.zst"}));
}

TEST_F(CompletionTest, BashLeavesTheOptionsOfProgramsAlone) {
  write_file(home_ / "input", "");
  EXPECT_EQ(bash({"run", "--depth", "3", "printen"}), (Set{"printenv"}));
  EXPECT_EQ(bash({"run", "--", "printen"}), (Set{"printenv"}));
  EXPECT_EQ(bash({"check", "--", "printen"}), (Set{"printenv"}));
  EXPECT_EQ(bash({"run", "cat", "in"}), (Set{"input"}));
  EXPECT_EQ(bash({"run", "cat", "--"}), Set{});
}

TEST_F(CompletionTest, FishOffersTheSame) {
  const Set first = fish("memlog ");
  for (const std::string& command : commands_) EXPECT_EQ(first.count(command), 1u) << command;
  for (const std::string& command : commands_) {
    const Set options = fish("memlog " + command + " --");
    for (const std::string& option : options_of(command)) {
      EXPECT_TRUE(options.count(option) != 0 || options.count(option + "=") != 0)
          << command << ' ' << option;
    }
  }
  EXPECT_EQ(fish("memlog diff --by "), (Set{"blocks", "bytes"}));
}

// A process of its own name is there while a shell completes: the shell.
TEST_F(CompletionTest, MapTakesProcessesAndReports) {
  for (const char* name : {"bas-1-1.memlog", "bas.txt", "fis-1-1.memlog", "fis.txt"}) {
    write_file(home_ / name, "");
  }
  const Set in_bash = bash({"map", "bas"});
  EXPECT_EQ(in_bash.count("bas-1-1.memlog") + in_bash.count("bash"), 2u);
  EXPECT_EQ(in_bash.count("bas.txt"), 0u);
  const Set in_fish = fish("memlog map fis");
  EXPECT_EQ(in_fish.count("fis-1-1.memlog") + in_fish.count("fish"), 2u);
  const Set in_zsh = zsh({"map", ""});
  EXPECT_EQ(in_zsh.count("zsh:") + in_zsh.count("files *.memlog(|.zst)(-.)"), 2u);
}

TEST_F(CompletionTest, ZshOffersTheSame) {
  EXPECT_EQ(zsh({"export", "--format=pp"}), (Set{"--format=pprof:"}));
  EXPECT_EQ(zsh({"export", "-f", "pp"}), (Set{"pprof:"}));
  EXPECT_EQ(zsh({"show", "--sy"}).size(), 2u);
  EXPECT_EQ(zsh({"run", "--depth", "3", "cat", "in"}), (Set{"normal 2 cat in"}));
  EXPECT_EQ(zsh({"check", "--", "printen"}), (Set{"normal 1 printen"}));
}

TEST_F(CompletionTest, ShellsTakeTheScripts) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(offered({shell, "-n", script(shell)}), Set{}) << shell;
  }
  EXPECT_EQ(offered({"zsh", "-f", "-c",
                     "autoload -U compinit; compinit -u -D; source $1; print $_comps[memlog]", "-",
                     script("zsh")}),
            Set{"_memlog"});
}

}  // namespace
}  // namespace mtrace::test
