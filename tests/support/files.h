// Whole files, and what a text has.
#pragma once

#include <string>
#include <vector>

namespace mtrace::test {

// Empty when the file cannot be read.
std::string read_file(const std::string& path);
// Throws when the file cannot be written.
void write_file(const std::string& path, const std::string& text);

std::vector<std::string> lines_of(const std::string& text);

// Regular expressions as RE2 has them; to compile and run std::regex takes a test seconds. A match
// is its groups, the whole first. What is no expression throws.
using Match = std::vector<std::string>;
// All places that match, one behind the other, and the first of these; empty: there is none.
std::vector<Match> all_matches(const std::string& text, const std::string& pattern);
Match first_match(const std::string& text, const std::string& pattern);
bool has_match(const std::string& text, const std::string& pattern);
// Whether the whole text is a match.
bool is_match(const std::string& text, const std::string& pattern);
// The first group of each match.
std::vector<std::string> matches(const std::string& text, const std::string& pattern);
// The text with each match replaced; \1 in `by` is the first group.
std::string replaced(std::string text, const std::string& pattern, const std::string& by);

// A file that the owner can run; one that only the owner can read.
void write_script(const std::string& path, const std::string& text);
void write_private(const std::string& path, const std::string& text);

}  // namespace mtrace::test
