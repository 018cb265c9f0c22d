#include "surface/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "surface/cli/arguments.h"
#include "surface/cli/command.h"

namespace mtrace::cli {
namespace {

// Which words to complete where, for the scripts of all shells.
enum class Words {
  kNone,
  kMemlogs,
  kFiles,
  kDirectories,
  kProgram,
  kProcesses,
  kProcessesOrMemlogs,
  kTopics,
};

// Returns what a command's operands are.
Words operands_of(const std::string& command) {
  if (command == "run") return Words::kProgram;
  for (const char* of_processes :
       {"report", "status", "attach", "detach", "top", "expire", "unreachable", "serve"}) {
    if (command == of_processes) return Words::kProcesses;
  }
  if (command == "map") return Words::kProcessesOrMemlogs;
  for (const char* of_files : {"decode", "recover", "events", "replay"}) {
    if (command == of_files) return Words::kFiles;
  }
  if (command == "help") return Words::kTopics;
  return Words::kMemlogs;
}

// Returns what an option's value is, if the option has no choices.
Words values_of(const Option& option) {
  const std::string value = option.value;
  if (value == "DIR") return Words::kDirectories;
  return value.starts_with("FILE") ? Words::kFiles : Words::kNone;
}

bool takes_value(const Option& option) { return *option.value != '\0'; }

// Returns a command's options and --help.
std::vector<Option> options_of(const Manual& manual) {
  std::vector<Option> options = manual.options;
  options.push_back({"--help", "-h", "", "What this command does."});
  return options;
}

// Returns the first sentence, or half of it, short enough for a list.
std::string gist(const std::string& words) {
  constexpr size_t kLongest = 64;
  const std::string help = joined(words);
  std::string text = help.substr(0, std::min({help.find(". "), help.find(": "), help.find("; ")}));
  if (text.ends_with('.')) text.pop_back();
  if (text.size() > kLongest) text = text.substr(0, text.rfind(' ', kLongest - 3)) + "...";
  return text;
}

// Quotes a text for bash and zsh.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + '\'';
}

// Returns an option's choices, separated by blanks.
std::string spaced(const Option& option) {
  return fmt::format("{}", fmt::join(choices_of(option.choices), " "));
}

// Returns the names of all commands, separated by blanks.
std::string command_names() {
  std::string names;
  for (const Command* command : all_commands()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command->manual.name);
  }
  return names;
}

constexpr char kBashHead[] =
    R"sh(# bash completion for memlog; made by: memlog help --completion bash
_memlog_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2"); }

_memlog_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$@" | sort -u)
}

_memlog_memlogs() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -X '!*.memlog' -- "$1"
    compgen -f -X '!*.memlog.zst' -- "$1"; compgen -d -- "$1")
}

_memlog_processes() {
  _memlog_words "$(cat /proc/[0-9]*/comm 2>/dev/null | tr -s ' ' _ | sort -u)" "$1"
}

_memlog() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i
  # --by=live comes in three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $previous == = ]] && ((COMP_CWORD > 2)); then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  if ((COMP_CWORD < 2)); then
    _memlog_words "$commands --help --version" "$cur"
    return
  fi
)sh";

constexpr char kBashTail[] = R"sh(
  # Where the program of run, or that of check behind "--", begins.
  local program=
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      operands=${behind:-$operands} options= program=$((i + 1))
      break
    elif [[ " $valued " == *" ${COMP_WORDS[i]} "* ]]; then
      [[ ${COMP_WORDS[i+1]} == = ]] && ((++i))
      ((++i))
    elif [[ $operands == program && ${COMP_WORDS[i]} != -* ]]; then
      program=$i
      break
    fi
  done
  if [[ $operands == program ]]; then
    if [[ -n $program ]] && ((COMP_CWORD > program)); then
      if declare -F _command_offset >/dev/null; then _command_offset "$program"; return; fi
      _memlog_files -f -- "$cur"
      return
    elif [[ -n $program || $cur != -* ]]; then
      _memlog_files -c -- "$cur"
      return
    fi
  fi
  if [[ -z $program ]]; then
    case ${COMP_WORDS[1]}:$previous in
)sh";

constexpr char kBashEnd[] = R"sh(    esac
  fi
  if [[ $cur == -* && -n $options ]]; then
    _memlog_words "$options" "$cur"
    return
  fi
  case $operands in
    memlogs) _memlog_memlogs "$cur" ;;
    files) _memlog_files -f -- "$cur" ;;
    topics) _memlog_words "$commands options library-code" "$cur" ;;
    processes) _memlog_processes "$cur" ;;
    processes-or-memlogs)
      _memlog_processes "$cur"
      local -a names=("${COMPREPLY[@]}")
      _memlog_memlogs "$cur"
      COMPREPLY+=("${names[@]}")
      ;;
  esac
}

complete -F _memlog memlog
)sh";

const char* bash_words(Words words) {
  switch (words) {
    case Words::kMemlogs:
      return "memlogs";
    case Words::kFiles:
      return "files";
    case Words::kProgram:
      return "program";
    case Words::kProcesses:
      return "processes";
    case Words::kProcessesOrMemlogs:
      return "processes-or-memlogs";
    case Words::kTopics:
      return "topics";
    default:
      return "";
  }
}

std::string bash_completion() {
  std::string head = kBashHead;
  const std::string place = "local cur=";
  head.insert(head.find(place), fmt::format("local commands='{}'\n  ", command_names()));
  std::string out = head + "  local options= valued= operands= behind=\n";
  out += "  case ${COMP_WORDS[1]} in\n";
  std::string values;
  for (const Command* command : all_commands()) {
    const Manual& manual = command->manual;
    std::string options;
    std::string valued;
    for (const Option& option : options_of(manual)) {
      options += fmt::format("{}{}", options.empty() ? "" : " ", option.name);
      if (!takes_value(option)) continue;
      std::string pattern = fmt::format("{}:{}", manual.name, option.name);
      valued += fmt::format("{}{}", valued.empty() ? "" : " ", option.name);
      if (*option.brief != '\0') {
        pattern += fmt::format("|{}:{}", manual.name, option.brief);
        valued += fmt::format(" {}", option.brief);
      }
      const Words kind = values_of(option);
      std::string action;
      if (*option.choices != '\0') {
        action = fmt::format("_memlog_words '{}' \"$cur\"; ", spaced(option));
      } else if (kind == Words::kDirectories) {
        action = "_memlog_files -d -- \"$cur\"; ";
      } else if (kind == Words::kFiles) {
        action = "_memlog_files -f -- \"$cur\"; ";
      }
      values += fmt::format("      {}) {}return ;;\n", pattern, action);
    }
    const bool check = std::string(manual.name) == "check";
    out += fmt::format("    {})\n      options='{}'\n      valued='{}' operands={}{}\n      ;;\n",
                       manual.name, options, valued, bash_words(operands_of(manual.name)),
                       check ? " behind=program" : "");
  }
  return out + "  esac\n" + (kBashTail + 1) + values + kBashEnd;
}

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

}  // namespace

std::string completion(const std::string& shell) {
  return shell == "bash"  ? bash_completion()
         : shell == "zsh" ? zsh_completion()
                          : fish_completion();
}

}  // namespace mtrace::cli
