// A command's arguments and environment as execve takes them.
#pragma once

#include <string>
#include <vector>

#include "process.h"

namespace mtrace::test {

class ExecArguments {
 public:
  explicit ExecArguments(const Command& command) : arguments_(command.argv) {
    for (const auto& [name, value] : command.env) variables_.push_back(name + "=" + value);
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
