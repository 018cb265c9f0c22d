// Shell completion, generated from the tables of commands and options.
#pragma once

#include <string>

namespace mtrace::cli {

// Returns the script for "bash", "zsh" or "fish".
std::string completion(const std::string& shell);

}  // namespace mtrace::cli
