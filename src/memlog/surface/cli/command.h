// A command of memlog, and its output streams.
#pragma once

#include "surface/cli/arguments.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::cli {

inline constexpr int kGood = 0;
inline constexpr int kFailed = 1;    // the condition asked about is not met, or the command failed
inline constexpr int kUnusable = 2;  // a mistake in the command line, or a damaged file

// What kept a command from its answer.
enum class Fault : uint8_t {
  kNone,
  kUsage,     // a mistake in the command line
  kNotFound,  // what it was asked for is not there
  kOther,     // a file cannot be read, or is damaged; memory is short
};
Fault fault_of(const std::exception& error);

// How a command ended.
struct Ended {
  int status = kGood;  // of the exit
  Fault fault = Fault::kNone;
};

struct Streams {
  FILE* out;
  FILE* err;
  bool terminal;       // `out` is a terminal
  size_t columns = 0;  // of the terminal; 0: unknown
};

struct Command {
  Manual manual;
  int (*run)(const Arguments& arguments, const Streams& streams);
};

const Command& run_command();
const Command& attach_command();
const Command& detach_command();
const Command& report_command();
const Command& status_command();
const Command& top_command();
const Command& expire_command();
const Command& unreachable_command();
const Command& map_command();
const Command& heap_command();
const Command& history_command();
const Command& serve_command();
const Command& recover_command();
const Command& merge_command();
const Command& pack_command();
const Command& push_command();
const Command& collect_command();
const Command& resolve_command();
const Command& show_command();
const Command& tree_command();
const Command& diff_command();
const Command& leaks_command();
const Command& check_command();
const Command& export_command();
const Command& sql_command();
const Command& strip_command();
const Command& decode_command();
const Command& events_command();
const Command& replay_command();
const Command& help_command();

// The commands by what they are for, in the order of memlog help.
struct CommandGroup {
  const char* title;
  std::vector<const Command*> commands;
};
const std::vector<CommandGroup>& command_groups();
std::vector<const Command*> all_commands();

// The width of manual pages at a terminal of so many columns; 0: unknown.
size_t manual_width(size_t columns);

// Runs the program with `words`, its arguments without its name. Returns the exit status.
int run(const std::vector<std::string>& words, const Streams& streams);
// Runs a command, and reports what it throws.
Ended run(const Command& command, const Arguments& arguments, const Streams& streams);

// Writes "memlog: text\n" to the error stream.
void complain(const Streams& streams, const std::string& text);
void print(const Streams& streams, const std::string& text);
// Write text for people, to the output and the error stream: on a terminal, lines are broken at its
// width.
void say(const Streams& streams, const std::string& text);
void print_view(const Streams& streams, const std::string& text);

// Where a command's --output says: a file, completely or not at all, or standard output.

// The file is there after finish().
class Output {
 public:
  Output(const Arguments& arguments, const Streams& streams) : streams_(streams) {
    const std::string path = arguments.value("--output", "-");
    if (path != "-") file_.emplace(path);
  }
  void write(const std::string& text) {
    if (file_) {
      file_->write(text);
    } else {
      print(streams_, text);
    }
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  const Streams& streams_;
  std::optional<util::Replacement> file_;
};

// Shell completion and parts of the manual pages (doc/man), from the tables of commands and
// options.

// Returns the script for "bash", "zsh" or "fish". It calls memlog help --complete, and has of its
// own only what the shell knows best: names of files and programs.
std::string completion(const std::string& shell);

// Returns what to offer for the last of the words behind "memlog": the kind of files to add (none,
// files, directories, memlogs, or "program N": word N begins another command line), and a line for
// each candidate with its description behind a tab.
std::string offers(const std::string& shell, const std::vector<std::string>& words);

// Escapes `text` so that roff shows it literally, even if it begins with a period.
std::string roff_text(const std::string& text);

// Returns the sections of memlog(1): one for each command, and one for the options that several
// commands share.
std::string command_pages();

}  // namespace mtrace::cli
