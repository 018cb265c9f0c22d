#include <fmt/format.h>

#include "cli/command.h"
#include "cli/completion_words.h"

namespace mtrace::cli {
namespace {

std::string fish_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

const char* fish_words(Words words) {
  switch (words) {
    case Words::kMemlogs:
      return " -k -a '(__fish_complete_suffix .memlog; __fish_complete_suffix .memlog.zst)'";
    case Words::kFiles:
      return " -F";
    case Words::kDirectories:
      return " -a '(__fish_complete_directories)'";
    case Words::kProgram:
      return " -a '(__fish_complete_subcommand)'";
    case Words::kProcesses:
      return " -a '(cat /proc/*/comm 2>/dev/null | sort -u)'";
    case Words::kProcessesOrMemlogs:
      return " -k -a '(cat /proc/*/comm 2>/dev/null | sort -u; __fish_complete_suffix .memlog; "
             "__fish_complete_suffix .memlog.zst)'";
    default:
      return "";
  }
}

}  // namespace

std::string fish_completion() {
  std::string out =
      "# fish completion for memlog; made by: memlog help --completion fish\n"
      "complete -c memlog -f\n"
      "complete -c memlog -n __fish_use_subcommand -l help -d 'The commands'\n"
      "complete -c memlog -n __fish_use_subcommand -l version -d 'The version'\n";
  for (const Command* command : all_commands()) {
    const Manual& manual = command->manual;
    const std::string when =
        fmt::format("complete -c memlog -n '__fish_seen_subcommand_from {}'", manual.name);
    out += fmt::format("complete -c memlog -n __fish_use_subcommand -a {} -d {}\n", manual.name,
                       fish_text(manual.purpose));
    for (const Option& option : options_of(manual)) {
      out += fmt::format("{} -l {}", when, option.name + 2);
      if (*option.brief != '\0') out += fmt::format(" -s {}", option.brief + 1);
      if (*option.choices != '\0') {
        out += fmt::format(" -x -a '{}'", spaced(option));
      } else if (takes_value(option)) {
        const Words kind = values_of(option);
        out += fmt::format("{}{}", kind == Words::kFiles ? " -r" : " -x", fish_words(kind));
      }
      out += fmt::format(" -d {}\n", fish_text(gist(option.help)));
    }
    const Words operands = operands_of(manual.name);
    out += operands == Words::kTopics
               ? fmt::format("{} -a '{} options library-code'\n", when, command_names())
               : fmt::format("{}{}\n", when, fish_words(operands));
  }
  return out;
}

}  // namespace mtrace::cli
