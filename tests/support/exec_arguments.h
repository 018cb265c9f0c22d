// A command's arguments and environment as execve takes them.
#pragma once

#include <string>
#include <vector>

#include "process.h"

namespace mtrace::test {

class ExecArguments {
 public:
  explicit ExecArguments(const Command& command) : arguments_(command.argv) {
    const bool emulated = !emulator().empty() && command.argv[0].starts_with(program(""));
    if (emulated) arguments_.insert(arguments_.begin(), emulator().begin(), emulator().end());
    auto place = arguments_.begin() + static_cast<ptrdiff_t>(emulated ? emulator().size() : 0);
    for (const auto& [name, value] : command.env) {
      if (emulated && name == "LD_PRELOAD") {  // not for the emulator itself
        place = arguments_.insert(place, {"-E", name + "=" + value});
      } else {
        variables_.push_back(name + "=" + value);
      }
    }
    argv_ = pointers(arguments_);
    envp_ = pointers(variables_);
  }
  ExecArguments(const ExecArguments&) = delete;
  ExecArguments& operator=(const ExecArguments&) = delete;

  char** argv() { return argv_.data(); }
  char** envp() { return envp_.data(); }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> to;
    for (std::string& text : texts) to.push_back(text.data());
    to.push_back(nullptr);
    return to;
  }

  std::vector<std::string> arguments_;
  std::vector<std::string> variables_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
};

}  // namespace mtrace::test
