#include "files.h"

#include <re2/re2.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace mtrace::test {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

namespace {

// Compiled once for all lines of a file. Of bytes, as texts under test are.
const RE2& expression(const std::string& pattern) {
  thread_local std::map<std::string, std::unique_ptr<RE2>> known;
  std::unique_ptr<RE2>& one = known[pattern];
  if (one == nullptr) one = std::make_unique<RE2>(pattern, RE2::Latin1);
  if (!one->ok()) throw std::runtime_error(pattern + ": " + one->error());
  return *one;
}

std::vector<Match> matches_of(const std::string& text, const std::string& pattern, size_t most) {
  const RE2& one = expression(pattern);
  std::vector<re2::StringPiece> groups(1 + static_cast<size_t>(one.NumberOfCapturingGroups()));
  std::vector<Match> found;
  for (size_t at = 0; found.size() < most && at <= text.size();) {
    if (!one.Match(text, at, text.size(), RE2::UNANCHORED, groups.data(),
                   static_cast<int>(groups.size()))) {
      break;
    }
    found.emplace_back(groups.begin(), groups.end());
    at = static_cast<size_t>(groups[0].end() - text.data()) + (groups[0].empty() ? 1 : 0);
  }
  return found;
}

}  // namespace

std::vector<Match> all_matches(const std::string& text, const std::string& pattern) {
  return matches_of(text, pattern, SIZE_MAX);
}

Match first_match(const std::string& text, const std::string& pattern) {
  std::vector<Match> found = matches_of(text, pattern, 1);
  return found.empty() ? Match() : std::move(found[0]);
}

bool has_match(const std::string& text, const std::string& pattern) {
  return RE2::PartialMatch(text, expression(pattern));
}

bool is_match(const std::string& text, const std::string& pattern) {
  return RE2::FullMatch(text, expression(pattern));
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  for (const Match& match : all_matches(text, pattern)) found.push_back(match.at(1));
  return found;
}

std::string replaced(std::string text, const std::string& pattern, const std::string& by) {
  RE2::GlobalReplace(&text, expression(pattern), by);
  return text;
}

void write_script(const std::string& path, const std::string& text) {
  write_file(path, text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

void write_private(const std::string& path, const std::string& text) {
  write_file(path, text);
  std::filesystem::permissions(path, std::filesystem::perms(0600));
}

}  // namespace mtrace::test
