// The program around the commands.
#include <fmt/format.h>

#include <exception>

#include "cli/command.h"
#include "profile/error.h"

#ifndef MTRACE_VERSION
#error "the Makefile defines MTRACE_VERSION"
#endif

namespace mtrace::cli {
namespace {

int run_one(const Command& command, const std::vector<std::string>& words, const Streams& streams) {
  const Arguments arguments(command.manual, words);
  if (!arguments.has("--help")) return command.run(arguments, streams);
  print(streams, manual_text(command.manual));
  return kGood;
}

int choose(const std::vector<std::string>& words, const Streams& streams) {
  if (words.empty()) return help_command().run(Arguments(help_command().manual, {}), streams);
  const std::string& name = words[0];
  if (name == "--version" || name == "-V") {
    print(streams, fmt::format("memlog {}\n", MTRACE_VERSION));
    return kGood;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (name == "--help" || name == "-h") return run_one(help_command(), {}, streams);
  std::vector<std::string> names;
  for (const Command* command : all_commands()) {
    if (name == command->manual.name) return run_one(*command, rest, streams);
    names.emplace_back(command->manual.name);
  }
  const std::string meant = nearest(name, names);
  throw UsageError(fmt::format(
      "unknown command {} ({})", name,
      meant.empty() ? "memlog help lists them" : fmt::format("did you mean {}?", meant)));
}

}  // namespace

std::vector<const Command*> all_commands() {
  return {&run_command(),     &attach_command(),  &detach_command(), &report_command(),
          &status_command(),  &top_command(),     &show_command(),   &tree_command(),
          &diff_command(),    &leaks_command(),   &check_command(),  &export_command(),
          &recover_command(), &resolve_command(), &decode_command(), &help_command()};
}

void complain(const Streams& streams, const std::string& text) {
  fmt::print(streams.err, "memlog: {}\n", text);
}

void print(const Streams& streams, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), streams.out);
}

int run(const std::vector<std::string>& words, const Streams& streams) {
  try {
    return choose(words, streams);
  } catch (const profile::FormatError& error) {
    fmt::print(streams.err, "{}\n", error.what());
    return kUnusable;
  } catch (const UsageError& error) {
    complain(streams, error.what());
    return kUnusable;
  } catch (const std::exception& error) {
    complain(streams, error.what());
    return kFailed;
  }
}

}  // namespace mtrace::cli
