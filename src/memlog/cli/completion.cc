#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/completion_words.h"

namespace mtrace::cli {

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

Words values_of(const Option& option) {
  const std::string value = option.value;
  if (value == "DIR") return Words::kDirectories;
  return value.starts_with("FILE") ? Words::kFiles : Words::kNone;
}

bool takes_value(const Option& option) { return *option.value != '\0'; }

std::vector<Option> options_of(const Manual& manual) {
  std::vector<Option> options = manual.options;
  options.push_back({"--help", "-h", "", "What this command does."});
  return options;
}

std::string gist(const std::string& words) {
  constexpr size_t kLongest = 64;
  const std::string help = joined(words);
  std::string text = help.substr(0, std::min({help.find(". "), help.find(": "), help.find("; ")}));
  if (text.ends_with('.')) text.pop_back();
  if (text.size() > kLongest) text = text.substr(0, text.rfind(' ', kLongest - 3)) + "...";
  return text;
}

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

std::string spaced(const Option& option) {
  return fmt::format("{}", fmt::join(choices_of(option.choices), " "));
}

std::string command_names() {
  std::string names;
  for (const Command* command : all_commands()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command->manual.name);
  }
  return names;
}

std::string completion(const std::string& shell) {
  return shell == "bash"  ? bash_completion()
         : shell == "zsh" ? zsh_completion()
                          : fish_completion();
}

}  // namespace mtrace::cli
