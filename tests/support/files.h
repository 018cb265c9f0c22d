// Whole files.
#pragma once

#include <string>
#include <vector>

namespace mtrace::test {

// Empty when the file cannot be read.
std::string read_file(const std::string& path);
// Throws when the file cannot be written.
void write_file(const std::string& path, const std::string& text);

std::vector<std::string> lines_of(const std::string& text);
// The first group of each place in the text where the regular expression matches.
std::vector<std::string> matches(const std::string& text, const std::string& pattern);

// A file that the owner can run; one that only the owner can read.
void write_script(const std::string& path, const std::string& text);
void write_private(const std::string& path, const std::string& text);

}  // namespace mtrace::test
