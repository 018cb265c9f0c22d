// Parts of the manual pages.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>

#include "surface/cli/command.h"
#include "surface/cli/completion.h"
#include "util/text.h"

namespace mtrace::cli {
namespace {

constexpr size_t kWidth = 78;  // of the source; roff fills lines itself
constexpr int kCommon = 3;     // commands that have an option, from which on it is described once

// How many commands have an option of this name that means this.
int times(const Option& option) {
  int found = 0;
  for (const Command* command : all_commands()) {
    for (const Option& other : command->manual.options) {
      found += std::string(option.name) == other.name && std::string(option.help) == other.help;
    }
  }
  return found;
}

// Filled text. Each line is made safe by itself, since a period counts where a line begins.
std::string paragraph(const std::string& text) {
  std::string out;
  std::string lines = wrapped(text, 0, kWidth);
  lines.pop_back();
  for (const std::string_view line : util::split(lines, '\n')) {
    out += roff_text(std::string(line)) + '\n';
  }
  return out;
}

// A command that is too long for a page, as a shell takes it in several lines: cut at the last
// blank that fits and is not quoted.
std::string in_lines(std::string command) {
  constexpr size_t kLongest = 70;
  std::string out;
  while (command.size() > kLongest) {
    bool quote = false;
    size_t cut = 0;
    for (size_t i = 0; i < kLongest - 1; ++i) {
      if (command[i] == '\'') quote = !quote;
      if (command[i] == ' ' && !quote && command.find_first_not_of(' ') < i) cut = i;
    }
    if (cut == 0) break;
    out += roff_text(command.substr(0, cut) + " \\") + '\n';
    command = "    " + command.substr(cut + 1);
  }
  return out + roff_text(command) + '\n';
}

std::string literal(const std::string& lines, bool commands) {
  std::string out = ".PP\n.EX\n";
  for (const std::string_view line : util::split(lines, '\n')) {
    const std::string text(line.starts_with("  ") ? line.substr(2) : line);
    out += commands ? in_lines(text) : roff_text(text) + '\n';
  }
  return out + ".EE\n";
}

// As manual_text() has it: paragraphs parted by empty lines, indented lines as they are.
std::string paragraphs(const std::string& text) {
  std::string out;
  std::string filled;
  std::string kept;
  const auto flush = [&] {
    if (!filled.empty()) out += ".PP\n" + paragraph(filled);
    if (!kept.empty()) out += literal(kept.substr(0, kept.size() - 1), false);
    filled.clear();
    kept.clear();
  };
  for (const std::string_view line : util::split(text, '\n')) {
    const bool literal_line = line.starts_with("  ");
    if (line.empty() || (literal_line ? !filled.empty() : !kept.empty())) flush();
    if (line.empty()) continue;
    if (literal_line) {
      kept += fmt::format("{}\n", line);
    } else {
      filled += fmt::format("{} ", line);
    }
  }
  flush();
  return out;
}

std::string option_entry(const Option& option) {
  std::string out = ".TP\n";
  if (*option.brief != '\0') out += fmt::format("\\fB{}\\fP, ", roff_text(option.brief));
  out += fmt::format("\\fB{}\\fP", roff_text(option.name));
  if (*option.value != '\0') out += fmt::format(" \\fI{}\\fP", roff_text(option.value));
  return out + '\n' + paragraph(option.help);
}

std::string command_section(const Manual& manual) {
  std::string out = fmt::format(".SS memlog {}\n", manual.name);
  for (const std::string_view line : util::split(manual.synopsis, '\n')) {
    out += fmt::format(".PP\n\\fBmemlog {}\\fP {}\n", manual.name, roff_text(std::string(line)));
  }
  std::string purpose = manual.purpose;
  purpose[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(purpose[0])));
  out += ".PP\n" + paragraph(purpose + '.') + paragraphs(manual.text);
  std::string common;
  for (const Option& option : manual.options) {
    if (times(option) < kCommon) {
      out += option_entry(option);
    } else {
      common += fmt::format("{}\\fB{}\\fP", common.empty() ? "" : ",\n", roff_text(option.name));
    }
  }
  if (!common.empty()) {
    out += fmt::format(".PP\nAnd, see\n.BR \"Options of several commands\" :\n{}.\n", common);
  }
  out += ".PP\nExit status:\n" + paragraph(manual.status);
  std::string examples = manual.examples;
  if (!examples.empty()) out += literal(examples.substr(0, examples.size() - 1), true);
  return out;
}

}  // namespace

std::string roff_text(const std::string& text) {
  constexpr std::pair<char, const char*> kEscapes[] = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) out = "\\&";
  for (const char c : text) {
    const auto* const escape = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                            [&](const auto& one) { return one.first == c; });
    out += escape == std::end(kEscapes) ? std::string(1, c) : escape->second;
  }
  return out;
}

std::string command_pages() {
  std::string out;
  std::map<std::string, const Option*> common;
  for (const Command* command : all_commands()) {
    out += command_section(command->manual);
    for (const Option& option : command->manual.options) {
      if (times(option) >= kCommon) common[option.name] = &option;
    }
  }
  out += ".SS Options of several commands\n";
  for (const auto& [name, option] : common) out += option_entry(*option);
  return out;
}

}  // namespace mtrace::cli
