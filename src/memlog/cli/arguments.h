// The command line: one table describes a command's options, for reading them and for --help.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace mtrace::cli {

// A mistake in the command line: the program ends with status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Option {
  const char* name;   // "--depth"
  const char* brief;  // "-n", or ""
  const char* value;  // what its value is called; "" for a switch
  const char* help;
  const char* choices = "";  // "a|b": all that the value can be, the default first
};

std::vector<std::string> choices_of(const char* choices);

// What --help says of a command, in the order of a manual page.
struct Manual {
  const char* name;
  const char* purpose;   // one line, no period
  const char* synopsis;  // after the name; one line each
  const char* text;      // paragraphs, parted by empty lines; indented lines stay as they are
  std::vector<Option> options;
  const char* status;    // exit status, beyond what all commands share
  const char* examples;  // "  # what\n  command\n"
  // The first operand ends the options: what follows is another program's.
  bool ends_at_operand = false;
};

class Arguments {
 public:
  // Options may stand among the operands; "--" ends them. Each command has --help. Throws
  // UsageError.
  Arguments(const Manual& manual, const std::vector<std::string>& words);

  const std::string& command() const { return command_; }
  bool has(const std::string& name) const { return given_.count(name) != 0; }
  // The last value given, or `otherwise`.
  std::string value(const std::string& name, const std::string& otherwise = "") const;
  // All values, in order.
  std::vector<std::string> values(const std::string& name) const;
  // A number from `minimum` to `maximum`; throws UsageError.
  long number(const std::string& name, long otherwise, long minimum, long maximum) const;
  // One of the option's choices, the first of which is the default; throws UsageError.
  std::string choice(const std::string& name) const;
  const std::vector<std::string>& operands() const { return operands_; }
  // How many of them stood before "--"; all of them where there is none.
  size_t before_dashes() const { return before_dashes_; }

 private:
  std::string command_;
  std::map<std::string, std::string> choices_;  // of the options that have some
  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> operands_;
  size_t before_dashes_ = 0;
};

// The one of `known` that `word` was most likely meant to be; empty: none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

// The manual page as text of at most 80 columns.
std::string manual_text(const Manual& manual);

// `text` as one line: newlines and runs of spaces become one space.
std::string joined(std::string text);

// The words of `text` in lines of at most `width` columns, each after `indent` spaces. Newlines in
// `text` count as spaces.
std::string wrapped(const std::string& text, size_t indent, size_t width);

}  // namespace mtrace::cli
