// The program around the commands.

#include "process/run/launch.h"
#include "surface/cli/command.h"
#include "util/error.h"
#include "util/screen.h"
#include "util/text.h"

#ifndef MTRACE_VERSION
#error "the Makefile defines MTRACE_VERSION"
#endif

namespace mtrace::cli {
namespace {

// The pager that the user wants: MEMLOG_PAGER, PAGER or less, if it is there. Empty: none.
std::string pager_command() {
  for (const char* variable : {"MEMLOG_PAGER", "PAGER"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr) return std::string(value) == "cat" ? "" : value;
  }
  return process::find_program("less").empty() ? "" : "less";
}

int run_or_explain(const Command& command, const Arguments& arguments, const Streams& streams) {
  if (!arguments.has("--help")) return command.run(arguments, streams);
  print(streams, manual_text(command.manual, manual_width(streams.columns)));
  return kGood;
}

// With a pager, if the command has views, these go to a terminal, and nobody minds.
int run_one(const Command& command, const std::vector<std::string>& words, const Streams& streams) {
  const Arguments arguments(command.manual, words);
  const std::vector<Option>& options = command.manual.options;
  const bool views = std::any_of(options.begin(), options.end(), [](const Option& option) {
    return option.name == std::string(util::kNoPager);
  });
  const util::Screen screen = util::screen_of(streams.out);
  const std::string pager = pager_command();
  const bool wanted = (views || arguments.has("--help")) && !arguments.has(util::kNoPager);
  if (!streams.terminal || !wanted || screen.rows == 0 || screen.columns == 0 || pager.empty()) {
    const size_t columns = streams.terminal ? screen.columns : 0;
    return run_or_explain(command, arguments,
                          {streams.out, streams.err, streams.terminal, columns});
  }
  const util::Pager paged(streams.out, screen, pager);
  return run_or_explain(command, arguments, {paged.stream(), streams.err, true, screen.columns});
}

int choose(const std::vector<std::string>& words, const Streams& streams) {
  if (words.empty()) return help_command().run(Arguments(help_command().manual, {}), streams);
  const std::string& name = words[0];
  if (name == "--version" || name == "-V" || name == "-v" || name == "version") {
    print(streams, fmt::format("memlog {}\n", MTRACE_VERSION));
    return kGood;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (name == "--help" || name == "-h") return run_one(help_command(), rest, streams);
  std::vector<std::string> names;
  for (const Command* command : all_commands()) {
    if (name == command->manual.name) return run_one(*command, rest, streams);
    names.emplace_back(command->manual.name);
  }
  const std::string meant = nearest(name, names);
  if (name.find('/') != std::string::npos) {
    throw UsageError(fmt::format("unknown command {0}; to run a program: memlog run {0}",
                                 util::shell_word(name)));
  }
  throw UsageError(fmt::format(
      "unknown command {} ({})", name,
      meant.empty() ? "memlog help lists them" : fmt::format("did you mean {}?", meant)));
}

// Prints what `body` throws, and returns the exit status for it.
template <typename Body>
Ended reported(const Streams& streams, Body body) {
  try {
    const int status = body();
    return {status, status == kGood ? Fault::kNone : Fault::kOther};
  } catch (const util::FormatError& error) {
    fmt::print(streams.err, "{}\n", error.what());
    return {kUnusable, Fault::kOther};
  } catch (const std::exception& error) {
    complain(streams, error.what());
    const Fault fault = fault_of(error);
    return {fault == Fault::kUsage ? kUnusable : kFailed, fault};
  }
}

}  // namespace

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups = {
      {"First",
       {&run_command(), &report_command(), &attach_command(), &show_command(), &diff_command(),
        &leaks_command()}},
      {"Reports",
       {&tree_command(), &check_command(), &export_command(), &sql_command(), &merge_command(),
        &resolve_command(), &decode_command()}},
      {"Running processes",
       {&top_command(), &status_command(), &detach_command(), &expire_command(),
        &unreachable_command(), &map_command(), &heap_command(), &history_command()}},
      {"Every event", {&events_command(), &strip_command(), &replay_command()}},
      {"Services and many machines", {&serve_command(), &push_command(), &collect_command()}},
      {"Another machine", {&pack_command()}},
      {"Besides", {&recover_command(), &help_command()}},
  };
  return groups;
}

std::vector<const Command*> all_commands() {
  std::vector<const Command*> all;
  for (const CommandGroup& group : command_groups()) {
    all.insert(all.end(), group.commands.begin(), group.commands.end());
  }
  return all;
}

Fault fault_of(const std::exception& error) {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return Fault::kUsage;
  if (dynamic_cast<const util::NotFound*>(&error) != nullptr) return Fault::kNotFound;
  const auto* const file = dynamic_cast<const util::FileError*>(&error);
  const bool missing = file != nullptr && file->error_number() == ENOENT;
  return missing ? Fault::kNotFound : Fault::kOther;
}

size_t manual_width(size_t columns) {
  constexpr size_t kPage = 80;
  constexpr size_t kLeast = 40;
  return columns == 0 ? kPage : std::clamp(columns, kLeast, kPage);
}

void complain(const Streams& streams, const std::string& text) {
  say(streams, fmt::format("memlog: {}\n", text));
}

void say(const Streams& streams, const std::string& text) {
  fmt::print(streams.err, "{}", util::fold_lines(text, util::screen_of(streams.err).columns));
}

void print(const Streams& streams, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), streams.out);
}

void print_view(const Streams& streams, const std::string& text) {
  print(streams, util::fold_lines(text, streams.columns));
}

int run(const std::vector<std::string>& words, const Streams& streams) {
  return reported(streams, [&] { return choose(words, streams); }).status;
}

Ended run(const Command& command, const Arguments& arguments, const Streams& streams) {
  return reported(streams, [&] { return command.run(arguments, streams); });
}

}  // namespace mtrace::cli
