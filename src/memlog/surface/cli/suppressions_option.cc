#include "surface/cli/suppressions_option.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <unordered_map>

#include "util/error.h"
#include "util/file.h"

namespace mtrace::cli {
namespace {

void add_file(const std::string& source, const std::string& file,
              std::vector<analyze::StackPattern>& patterns) {
  std::string text;
  try {
    text = util::read_file(file);
  } catch (const util::FileError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
  for (auto& pattern : analyze::read_suppressions(file == "-" ? "<stdin>" : file, text)) {
    patterns.push_back(std::move(pattern));
  }
}

// The value of `name` among settings that colons, commas or blanks separate, and that may be in
// quotes. The last one counts.
std::string sanitizer_setting(const std::string& options, const std::string& name) {
  constexpr char kBetween[] = ":, \t\n\r";
  std::string found;
  for (size_t at = 0; at < options.size();) {
    at = options.find_first_not_of(kBetween, at);
    if (at == std::string::npos) break;
    const size_t equals = options.find_first_of(std::string("=") + kBetween, at);
    if (equals == std::string::npos) break;
    const std::string key = options.substr(at, equals - at);
    at = equals + 1;
    if (options[equals] != '=') continue;
    const bool quoted = at < options.size() && (options[at] == '\'' || options[at] == '"');
    const size_t begin = quoted ? at + 1 : at;
    const size_t end =
        quoted ? options.find(options[at], begin) : options.find_first_of(kBetween, begin);
    if (key == name) found = options.substr(begin, end - begin);
    at = end == std::string::npos ? options.size() : end + 1;
  }
  return found;
}

}  // namespace

void add_suppressions(const char* command, const Arguments& arguments,
                      std::vector<analyze::StackPattern>& patterns) {
  for (const std::string& file : arguments.values("--suppressions")) {
    add_file(fmt::format("{}: --suppressions", command), file, patterns);
  }
}

void add_lsan_suppressions(const char* command, const std::string& options,
                           const std::string& directory, const std::string& program,
                           std::vector<analyze::StackPattern>& patterns) {
  const std::string file = sanitizer_setting(options, "suppressions");
  if (file.empty()) return;
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::path(directory) / file;
  const fs::path beside = fs::path(program).parent_path() / file;
  if (!fs::exists(path, error) && fs::exists(beside, error)) path = beside;
  add_file(fmt::format("{}: LSAN_OPTIONS: suppressions", command), path, patterns);
}

void suppress_stacks(HeapScan& scan, const ledger::LedgerFile& file,
                     const ledger::KnownLedger& known, text::StackNames& names,
                     const std::vector<analyze::StackPattern>& patterns) {
  if (patterns.empty()) return;
  std::unordered_map<uint32_t, const ledger::LedgerStackState*> lost;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (scan.reach(i) == analyze::Reach::kReachable) continue;
    const uint32_t stack = scan.blocks()[i].stack;
    if (const auto* state = known.find(stack)) lost.emplace(stack, state);
  }
  std::vector<const ledger::LedgerStackState*> stacks;
  for (const auto& [index, state] : lost) stacks.push_back(state);
  names.learn(file, known.state(), stacks);
  std::unordered_map<uint32_t, bool> suppressed;
  for (const auto& [index, state] : lost) suppressed[index] = names.matches(*state, patterns);
  scan.suppress([&](uint32_t stack) {
    const auto found = suppressed.find(stack);
    return found != suppressed.end() && found->second;
  });
}

}  // namespace mtrace::cli
