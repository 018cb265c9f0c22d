#include "surface/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "process/inspect/process.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"

namespace mtrace::cli {
namespace {

// What there is to complete, beside the candidates: what the shell itself knows best.
enum class Words {
  kNone,
  kMemlogs,
  kFiles,
  kDirectories,
  kProgram,  // the name of one, and then its words
  kProcesses,
  kProcessesOrMemlogs,
  kTopics,
};

// Returns what a command's operands are.
Words operands_of(const std::string& command) {
  if (command == "run") return Words::kProgram;
  for (const char* of_processes : {"report", "status", "attach", "detach", "top", "expire",
                                   "unreachable", "heap", "history", "serve"}) {
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

// What is offered for the last of some words. The shells' scripts read it as text: the kind of
// files to add, and then a candidate and its description in each line.
class Offer {
 public:
  explicit Offer(std::string typed) : typed_(std::move(typed)) {}

  void add(const std::string& candidate, const std::string& description = "") {
    if (!candidate.starts_with(typed_)) return;
    lines_ += before_ + candidate + '\t' + description + '\n';
  }
  void add_choices(const Option& option) {
    for (const std::string& choice : choices_of(option.choices)) add(choice);
  }
  void add_options(const Manual& manual) {
    for (const Option& option : options_of(manual)) add(option.name, gist(option.help));
  }
  void add_commands() {
    for (const Command* command : all_commands()) {
      add(command->manual.name, command->manual.purpose);
    }
  }
  void add_words(Words words) {
    if (words == Words::kTopics) {
      add_commands();
      add("options", "The library's options");
      add("library-code", "What counts as library code");
    }
    if (words == Words::kProcesses || words == Words::kProcessesOrMemlogs) add_processes();
    files_ = words == Words::kMemlogs || words == Words::kProcessesOrMemlogs ? "memlogs"
             : words == Words::kFiles                                        ? "files"
             : words == Words::kDirectories                                  ? "directories"
                                                                             : "none";
  }
  // The program begins at the word of this number.
  void leave_to_shell(size_t program) { files_ = fmt::format("program {}", program); }
  // The text before what is completed, which a shell that takes "--by=live" as one word wants back.
  void keep(const std::string& before) { before_ = before; }

  std::string text() const { return files_ + '\n' + lines_; }

 private:
  void add_processes() {
    std::set<std::string> names;
    for (const pid_t pid : process::all_processes()) names.insert(process::process_name(pid));
    names.erase("");
    for (const std::string& name : names) {
      if (name.find_first_of(" \t\n") == std::string::npos) add(name);
    }
  }

  std::string typed_;
  std::string before_;
  std::string files_ = "none";
  std::string lines_;
};

// The option of this name, or the one in "--by=live"; nullptr: none.
const Option* option_of(const std::vector<Option>& options, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const Option& option : options) {
    if (name == option.name || (*option.brief != '\0' && name == option.brief)) return &option;
  }
  return nullptr;
}

// bash breaks "--by=live" into three words. Returns the words as the other shells have them.
std::vector<std::string> joined_at_equals(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "=" && !out.empty()) {
      out.back() += '=';
      if (i + 1 < words.size()) out.back() += words[++i];
    } else {
      out.push_back(words[i]);
    }
  }
  return out;
}

std::string offer_value(const Option& option, const std::string& typed, const std::string& before) {
  Offer offer(typed);
  offer.keep(before);
  if (*option.choices != '\0') {
    offer.add_choices(option);
  } else {
    offer.add_words(values_of(option));
  }
  return offer.text();
}

// For the last word of a command's, which have its name at their beginning.
std::string offer_of(const Manual& manual, const std::vector<std::string>& words, bool is_bash) {
  const std::vector<Option> options = options_of(manual);
  const std::string& last = words.back();
  const std::string name = manual.name;
  Words operands = operands_of(name);
  bool takes_options = true;
  size_t program = 0;
  for (size_t i = 1; i + 1 < words.size() && program == 0; ++i) {
    const Option* const option = option_of(options, words[i]);
    if (words[i] == "--") {
      takes_options = false;
      if (name == "check") operands = Words::kProgram;
      if (operands == Words::kProgram) program = i + 1;
      break;
    }
    if (option != nullptr && takes_value(*option) && words[i].find('=') == std::string::npos) {
      if (i + 2 == words.size()) return offer_value(*option, last, "");
      ++i;
    } else if (operands == Words::kProgram && !words[i].starts_with('-')) {
      program = i;
    }
  }
  Offer offer(last);
  if (operands == Words::kProgram && (program != 0 || !last.starts_with('-'))) {
    offer.leave_to_shell(program != 0 ? program : words.size() - 1);
    return offer.text();
  }
  const size_t equals = last.find('=');
  const Option* const option = option_of(options, last);
  if (takes_options && last.starts_with("--") && equals != std::string::npos) {
    if (option == nullptr) return offer.text();
    return offer_value(*option, last.substr(equals + 1), is_bash ? "" : last.substr(0, equals + 1));
  }
  if (takes_options && last.starts_with('-')) {
    offer.add_options(manual);
  } else {
    offer.add_words(operands);
  }
  return offer.text();
}

constexpr char kBash[] =
    R"sh(# bash completion for memlog; made by: memlog help --completion bash
_memlog() {
  local cur=${COMP_WORDS[COMP_CWORD]} kind at word
  [[ $cur == = ]] && cur=
  COMPREPLY=()
  {
    read -r kind at
    while IFS=$'\t' read -r word _; do COMPREPLY+=("$word"); done
  } < <("${COMP_WORDS[0]}" help --complete bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  local -a how=()
  case $kind in
    files) how=(-f) ;;
    directories) how=(-d) ;;
    memlogs)
      compopt -o filenames 2>/dev/null
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '!*.memlog' -- "$cur"
        compgen -f -X '!*.memlog.zst' -- "$cur"; compgen -d -- "$cur")
      ;;
    program)
      if ((COMP_CWORD <= at + 1)); then
        how=(-c)
      elif declare -F _command_offset >/dev/null; then
        _command_offset $((at + 1))
      else
        how=(-f)
      fi
      ;;
  esac
  if ((${#how[@]})); then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "${how[@]}" -- "$cur" | sort -u)
  fi
}

complete -F _memlog memlog
)sh";

constexpr char kZsh[] = R"sh(#compdef memlog
# zsh completion for memlog; made by: memlog help --completion zsh
_memlog() {
  local -a lines offers
  lines=("${(@f)$($words[1] help --complete zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  local kind=${lines[1]%% *} at=${lines[1]##* } line found=1
  for line in "${(@)lines[2,-1]}"; do
    [[ -n $line ]] && offers+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (( $#offers )) && _describe -V memlog offers && found=0
  case $kind in
    files) _files && found=0 ;;
    directories) _files -/ && found=0 ;;
    memlogs) _files -g "*.memlog(|.zst)(-.)" && found=0 ;;
    program)
      shift $(( at + 1 )) words
      (( CURRENT -= at + 1 ))
      _normal && found=0
      ;;
  esac
  return found
}

# Installed, the file is the function itself; sourced, it is to be named.
if [[ $funcstack[1] == _memlog ]]; then
  _memlog "$@"
else
  compdef _memlog memlog
fi
)sh";

constexpr char kFish[] = R"sh(# fish completion for memlog; made by: memlog help --completion fish
function __memlog_offers
  set -l words (commandline -opc) (commandline -ct)
  set -l lines ($words[1] help --complete fish -- $words[2..-1] 2>/dev/null)
  printf '%s\n' $lines[2..-1]
  switch "$lines[1]"
    case files
      __fish_complete_path (commandline -ct)
    case directories
      __fish_complete_directories (commandline -ct)
    case memlogs
      __fish_complete_suffix .memlog
      __fish_complete_suffix .memlog.zst
    case 'program *'
      set -l at (string split ' ' $lines[1])[2]
      __fish_complete_subcommand --fcs-skip=(math $at + 1)
  end
end
complete -c memlog -f -k -a '(__memlog_offers)'
)sh";

}  // namespace

std::string completion(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

std::string offers(const std::string& shell, const std::vector<std::string>& given) {
  const std::vector<std::string> words = joined_at_equals(given);
  if (words.size() > 1) {
    for (const Command* command : all_commands()) {
      if (words[0] == command->manual.name) {
        return offer_of(command->manual, words, shell == "bash");
      }
    }
  }
  Offer offer(words.empty() ? "" : words.back());
  if (words.size() <= 1) {
    offer.add_commands();
    offer.add("--help", "The commands");
    offer.add("--version", "The version");
  }
  return offer.text();
}

}  // namespace mtrace::cli
