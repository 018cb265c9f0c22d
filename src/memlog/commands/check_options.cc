#include "commands/check_options.h"

#include <fmt/format.h>

#include "cli/filter_options.h"
#include "cli/search_path.h"
#include "cli/view_options.h"
#include "text/quantity.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Says by its exit status whether a program keeps to a limit, for continuous integration. "
    "Either reports are given, or a program, which is run under the library and whose report at "
    "exit is looked at.\n\n"
    "--max-live limits what is live in the last report. --max-growth limits what stacks have grown "
    "by: with --baseline since then (stacks matched as memlog diff does, also of another build), "
    "else in the reports given, without report 1. Stacks that shrank make no room for others. "
    "Without either, a program must leave nothing live, and reports must not grow.\n\n"
    "What C and C++ runtimes keep until the end (76,800 bytes in a C++ program that prints a line) "
    "is on a built-in list and left out, as is what --exclude and --suppressions name; the last "
    "line says how much. --print-builtin prints the list, which is a suppressions file.\n\n"
    "A program that fails by itself has failed: its exit status, or the signal that killed it, is "
    "that of memlog. Programs that it starts are looked at only with --follow. A "
    "program whose reports say that something of it is not covered (an allocator of its own, a "
    "plug-in that does not call the library, also one that was closed again) is not judged unless "
    "--uncovered is given.";

std::optional<uint64_t> size_of(const Arguments& arguments, const char* name) {
  if (!arguments.has(name)) return std::nullopt;
  const auto size = text::read_size(arguments.value(name));
  if (size) return size;
  throw UsageError(
      fmt::format("check: {} {} is not a size like 0 or 64K", name, arguments.value(name)));
}

}  // namespace

CheckOptions read_check_options(const Arguments& arguments) {
  CheckOptions options;
  options.max_growth = size_of(arguments, "--max-growth");
  options.max_live = size_of(arguments, "--max-live");
  options.baseline = arguments.value("--baseline");
  options.uncovered = arguments.has("--uncovered");
  const std::vector<std::string>& words = arguments.operands();
  const auto end = words.begin() + static_cast<ptrdiff_t>(arguments.before_dashes());
  options.files.assign(words.begin(), end);
  options.command.assign(end, words.end());
  if (options.files.empty() == options.command.empty()) {
    throw UsageError("check: give reports, or -- and a program");
  }
  if (!options.command.empty()) {
    if (options.max_growth && options.baseline.empty()) {
      throw UsageError("check: --max-growth of a program needs a --baseline");
    }
    if (arguments.has("--label") || arguments.has("--seq")) {
      throw UsageError("check: --label and --seq choose among reports, not for a program");
    }
  } else if (arguments.has("--follow")) {
    throw UsageError("check: --follow is for a program");
  }
  if (!options.max_growth && !options.max_live) {
    (options.command.empty() || !options.baseline.empty() ? options.max_growth : options.max_live) =
        0;
  }
  return options;
}

Manual check_manual() {
  return {"check",
          "fail when more is live, or has grown by more, than allowed",
          "[OPTION]... FILE...\n[OPTION]... -- PROGRAM [ARGUMENT]...\n--print-builtin",
          kText,
          with_filters(
              {{"--max-live", "", "SIZE", "What may be live: 0, 64K."},
               {"--max-growth", "", "SIZE", "By how much stacks may have grown, together."},
               {"--baseline", "", "FILE",
                "What growth is measured from: a report, a directory, or a pattern in quotes."},
               {"--follow", "", "1|GLOB[:GLOB]",
                "Look also at the programs that PROGRAM starts: all, or those whose name matches a "
                "pattern."},
               {"--uncovered", "", "",
                "Judge what is seen of a program that is not covered, or in part."},
               {"--no-builtin", "", "", "Do not leave out what runtimes keep."},
               {"--print-builtin", "", "", "Print the list of that."},
               {"--number", "-n", "N", "Entries shown; 0: all. Default 20."},
               {"--depth", "", "N", "Merge the stacks that agree in their first N frames."},
               kFullNamesOption,
               kNoResolveOption,
               kColorOption,
               kNoPagerOption,
               kSysrootOption,
               kSymbolsOption}),
          "0: within the limits; 1: beyond them, or a file cannot be read; 2: a file is not a "
          "proper memlog, the command line is wrong, or the program could not be traced. That of "
          "the program when it fails by itself.",
          "  memlog check -- ./unit_tests\n"
          "  memlog check --max-live 4K --suppressions ci.supp -- ./unit_tests\n"
          "  memlog check --max-growth 64K app-4711-*.memlog\n"
          "  memlog check --baseline main.memlog --max-growth 1K -- ./app --selftest\n"};
}

}  // namespace mtrace::cli
