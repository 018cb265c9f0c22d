#include <fmt/format.h>

#include "cli/command.h"
#include "cli/completion_words.h"

namespace mtrace::cli {
namespace {

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

const char* zsh_action(Words words) {
  switch (words) {
    case Words::kMemlogs:
      return "_files -g \"*.memlog(|.zst)(-.)\"";
    case Words::kFiles:
      return "_files";
    case Words::kDirectories:
      return "_files -/";
    case Words::kProcesses:
      return "_memlog_processes";
    case Words::kProcessesOrMemlogs:
      return "_memlog_processes_or_files";
    default:
      return " ";
  }
}

const char* describe(Words operands) {
  if (operands == Words::kProcesses) return "process";
  return operands == Words::kProcessesOrMemlogs ? "process or file" : "file";
}

std::string zsh_option(const Option& option) {
  std::string value;
  if (takes_value(option)) {
    value = fmt::format(":{}:", zsh_text(option.value));
    value += *option.choices != '\0' ? fmt::format("({})", spaced(option))
                                     : std::string(zsh_action(values_of(option)));
  }
  const std::string text = shell_quoted(fmt::format("[{}]{}", zsh_text(gist(option.help)), value));
  const char* equals = takes_value(option) ? "=" : "";
  if (*option.brief == '\0') return fmt::format("'*{}{}'{}", option.name, equals, text);
  return fmt::format("'*'{{{}{},{}{}}}{}", option.brief, takes_value(option) ? "+" : "",
                     option.name, equals, text);
}

}  // namespace

std::string zsh_completion() {
  std::string out =
      "#compdef memlog\n# zsh completion for memlog; made by: memlog help --completion zsh\n"
      "_memlog_processes() {\n"
      "  local -a names\n"
      "  names=(${(u)${(f)\"$(cat /proc/[0-9]*/comm 2>/dev/null)\"}})\n"
      "  compadd -a names\n}\n"
      "_memlog_processes_or_files() {\n"
      "  local found=1\n"
      "  _memlog_processes && found=0\n"
      "  _files -g \"*.memlog(|.zst)(-.)\" && found=0\n"
      "  return found\n}\n\n"
      "_memlog() {\n  local -a commands\n  commands=(\n";
  std::string cases;
  for (const Command* command : all_commands()) {
    const Manual& manual = command->manual;
    out += fmt::format("    {}\n",
                       shell_quoted(fmt::format("{}:{}", manual.name, zsh_text(manual.purpose))));
    cases += fmt::format("    {})\n      _arguments -s", manual.name);
    for (const Option& option : options_of(manual)) {
      cases += fmt::format(" \\\n        {}", zsh_option(option));
    }
    const Words operands = operands_of(manual.name);
    std::string rest;
    if (operands == Words::kProgram) {
      rest = "'(-)1:program:_command_names -e' '*::arguments:_normal'";
    } else if (operands == Words::kTopics) {
      rest = fmt::format("'1:topic:({} options library-code)'", command_names());
    } else {
      rest = shell_quoted(fmt::format("*:{}:{}", describe(operands), zsh_action(operands)));
    }
    cases += fmt::format(" \\\n        {}\n      ;;\n", rest);
  }
  return out +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( --CURRENT ))\n  case $command in\n" +
         cases + "  esac\n}\n\n" +
         // Installed, the file is the function itself; sourced, it is to be named.
         "if [[ $funcstack[1] == _memlog ]]; then\n  _memlog \"$@\"\nelse\n"
         "  compdef _memlog memlog\nfi\n";
}

}  // namespace mtrace::cli
