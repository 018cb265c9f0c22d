#include <fmt/format.h>

#include "cli/command.h"
#include "cli/completion_words.h"

namespace mtrace::cli {
namespace {

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

}  // namespace

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

}  // namespace mtrace::cli
