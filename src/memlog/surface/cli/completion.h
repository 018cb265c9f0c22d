// Shell completion and parts of the manual pages (doc/man), from the tables of commands and
// options.
#pragma once

#include "util/prelude.h"

namespace mtrace::cli {

// Returns the script for "bash", "zsh" or "fish". It calls memlog help --complete, and has of its
// own only what the shell knows best: names of files and programs.
std::string completion(const std::string& shell);

// Returns what to offer for the last of the words behind "memlog": the kind of files to add (none,
// files, directories, memlogs, or "program N": word N begins another command line), and a line for
// each candidate with its description behind a tab.
std::string offers(const std::string& shell, const std::vector<std::string>& words);

// Escapes `text` so that roff shows it literally, even if it begins with a period.
std::string roff_text(const std::string& text);

// Returns the sections of memlog(1): one for each command, and one for the options that several
// commands share.
std::string command_pages();

}  // namespace mtrace::cli
