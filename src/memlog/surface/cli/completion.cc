#include "process/inspect/process.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "util/text.h"

namespace mtrace::cli {
namespace {

// Returns what a command's operands are: "memlogs", "files", the "program" to start and its words,
// "processes", "both" memlogs and processes, or "topics" of help.
const char* operands_of(const std::string& command) {
  constexpr std::pair<const char*, std::string_view> kOperands[] = {
      {"program", " run "},
      {"processes", " report status attach detach top expire unreachable heap history serve "},
      {"both", " map "},
      {"files", " decode recover events replay "},
      {"topics", " help "}};
  for (const auto& [kind, commands] : kOperands) {
    if (commands.find(' ' + command + ' ') != std::string_view::npos) return kind;
  }
  return "memlogs";
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
struct Offer {
  std::string typed;
  std::string before = {};  // what a shell that takes "--by=live" as one word wants back
  std::string files = "none";
  std::string lines = {};

  void add(const std::string& candidate, const std::string& description = "") {
    if (!candidate.starts_with(typed)) return;
    lines += before + candidate + '\t' + description + '\n';
  }
  void add_commands() {
    for (const Command* command : all_commands()) {
      add(command->manual.name, command->manual.purpose);
    }
  }
  void add_processes() {
    std::set<std::string> names;
    for (const pid_t pid : process::all_processes()) names.insert(process::process_name(pid));
    names.erase("");
    for (const std::string& name : names) {
      if (name.find_first_of(" \t\n") == std::string::npos) add(name);
    }
  }
  void add_operands(const std::string& kind) {
    if (kind == "topics") {
      add_commands();
      add("options", "The library's options");
      add("library-code", "What counts as library code");
    } else if (kind == "processes" || kind == "both") {
      add_processes();
    }
    if (kind == "memlogs" || kind == "both") files = "memlogs";
    if (kind == "files") files = kind;
  }
  void add_values(const Option& option) {
    for (const std::string& choice : choices_of(option.choices)) add(choice);
    const std::string_view value = *option.choices == '\0' ? option.value : "";
    if (value == "DIR") files = "directories";
    if (value.starts_with("FILE")) files = "files";
  }
  std::string text() const { return files + '\n' + lines; }
};

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

// For the last word of a command's, which have its name at their beginning.
std::string offer_of(Manual manual, const std::vector<std::string>& words, bool is_bash) {
  manual.options.push_back({"--help", "-h", "", "What this command does."});
  std::string operands = operands_of(words[0]);
  const std::string& last = words.back();
  Offer offer = {.typed = last};
  bool options_end = false;
  size_t program = 0;  // its position; 0: it has not come yet
  for (size_t i = 1; i + 1 < words.size() && program == 0 && !options_end; ++i) {
    const Option* const option = find_option(manual, words[i]);
    if (words[i] == "--") {
      options_end = true;
      if (words[0] == "check") operands = "program";
      if (operands == "program") program = i + 1;
    } else if (option != nullptr && *option->value != '\0') {
      if (++i + 1 < words.size()) continue;
      offer.add_values(*option);
      return offer.text();
    } else if (operands == "program" && !words[i].starts_with('-')) {
      program = i;
    }
  }
  const size_t equals = last.find('=');
  if (operands == "program" && (program != 0 || !last.starts_with('-'))) {
    offer.files = fmt::format("program {}", program != 0 ? program : words.size() - 1);
  } else if (options_end || !last.starts_with('-')) {
    offer.add_operands(operands);
  } else if (last.starts_with("--") && equals != std::string::npos) {
    offer = {.typed = last.substr(equals + 1), .before = is_bash ? "" : last.substr(0, equals + 1)};
    const Option* const option = find_option(manual, last.substr(0, equals));
    if (option != nullptr) offer.add_values(*option);
  } else {
    for (const Option& option : manual.options) offer.add(option.name, gist(option.help));
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
  Offer offer = {.typed = words.empty() ? "" : words.back()};
  if (words.size() <= 1) {
    offer.add_commands();
    offer.add("--help", "The commands");
    offer.add("--version", "The version");
  }
  return offer.text();
}

// Parts of the manual pages.
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
