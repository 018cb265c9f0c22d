// The command line. One table describes a command's options, for parsing and for --help.
#pragma once

#include "util/prelude.h"

namespace mtrace::cli {

// A mistake in the command line. The program ends with status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Option {
  const char* name;   // "--depth"
  const char* brief;  // "-n", or ""
  const char* value;  // name of its value; "" for a switch
  const char* help;
  const char* choices = "";  // "a|b": all values it can have, the default first
  // Options as "--json|--format=html", the latter with this value: of the first, one must be given
  // too, of the second none. Those that the command does not have are passed over.
  const char* needs = "";
  const char* excludes = "";
};

// Returns the option of several commands as one that needs others in one of them.
constexpr Option needing(Option option, const char* others) {
  option.needs = others;
  return option;
}

std::vector<std::string> choices_of(const char* choices);

// The --help text of a command, in the order of a manual page.
struct Manual {
  const char* name;
  const char* purpose;   // one line, no period
  const char* synopsis;  // without the name; one per line
  const char* text;      // paragraphs, separated by empty lines; indented lines are kept
  std::vector<Option> options;
  const char* status;    // exit status, besides what all commands share
  const char* examples;  // "  # what\n  command\n"
  // The first operand ends the options: the rest belongs to another program.
  bool ends_at_operand = false;
};

// Returns the option with this name, "--depth" or "-n"; nullptr: the command has none.
const Option* find_option(const Manual& manual, const std::string& name);

class Arguments {
 public:
  // Parses `words`. Options may be among the operands; "--" ends them. Every command has --help.
  // Throws UsageError.
  Arguments(const Manual& manual, const std::vector<std::string>& words);
  // Takes options of the manual, by name, that are already told from operands. "" for a switch.
  using Given = std::multimap<std::string, std::string>;
  Arguments(const Manual& manual, const Given& given, std::vector<std::string> operands);

  const std::string& command() const { return command_; }
  bool has(const std::string& name) const { return given_.count(name) != 0; }
  // Returns the last value given, or `otherwise`.
  std::string value(const std::string& name, const std::string& otherwise = "") const;
  // Returns all values, in order.
  std::vector<std::string> values(const std::string& name) const;
  // Returns a number from `minimum` to `maximum`. Throws UsageError.
  long number(const std::string& name, long otherwise, long minimum, long maximum) const;
  // Return a time in milliseconds, from text as "500ms" (a number alone: seconds), or a size in
  // bytes; nothing: the option is not given. `range`: of the message, "from 1M, like 50G". Throw
  // UsageError.
  std::optional<uint64_t> milliseconds(const std::string& name, uint64_t least, uint64_t most,
                                       const char* range) const;
  std::optional<uint64_t> bytes(const std::string& name, uint64_t least, const char* range) const;
  // Returns one of the option's choices; the first is the default. Throws UsageError.
  std::string choice(const std::string& name) const;
  const std::vector<std::string>& operands() const { return operands_; }
  // Takes these operands for those given, and leaves out these options.
  void replace(std::vector<std::string> operands, const std::vector<std::string>& without);
  // Returns what to do when no operand is left: the message of a UsageError. `what`: "no program
  // given". Names the option that took the last word as its value.
  std::string lacking(const std::string& what) const;
  // Returns the number of operands before "--"; without "--", of all operands.
  size_t before_dashes() const { return before_dashes_; }

 private:
  void check_combinations(const Manual& manual) const;

  std::string command_;
  std::map<std::string, std::string> choices_;  // of the options that have choices
  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> operands_;
  size_t before_dashes_ = 0;
  std::string took_last_;  // "--depth took ./app as its value (N)"; empty: no option did
};

// Returns the entry of `known` that `word` most likely meant; empty: none is similar.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

// Returns the manual page as text of at most `width` columns.
std::string manual_text(const Manual& manual, size_t width = 80);

// Returns `text` as one line: newlines and runs of spaces become one space.
std::string joined(std::string text);

// Wraps the words of `text` to lines of at most `width` columns, each indented by `indent` spaces.
// Newlines in `text` count as spaces.
std::string wrapped(const std::string& text, size_t indent, size_t width);

}  // namespace mtrace::cli
