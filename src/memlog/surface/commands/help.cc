// memlog help: the commands, one command, or the options of libmtrace.so.

#include "format/option_kind.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "view/analyze/responsible.h"

namespace mtrace::cli {
namespace {

using format::OptionKind;

struct LibraryOption {
  const char* variable;
  OptionKind kind;
  const char* otherwise;
  long minimum;
  long maximum;
  const char* values;
  const char* help;
};

constexpr LibraryOption kLibraryOptions[] = {
#define MTRACE_OPTION(member, variable, kind, otherwise, minimum, maximum, values, help) \
  {variable, OptionKind::kind, otherwise, minimum, maximum, values, help},
#include "format/options.def"
#undef MTRACE_OPTION
};

// As text, or as a part of libmtrace(7).
std::string library_options(bool roff) {
  std::string out =
      roff ? ""
           : "Options of libmtrace.so: environment variables, read once when a program starts.\n";
  for (const LibraryOption& option : kLibraryOptions) {
    const std::string values =
        option.kind != OptionKind::kNumber ? option.values
        : option.maximum - option.minimum == 1
            ? fmt::format("{}|{}", option.minimum, option.maximum)
            : fmt::format("{} to {}{}{}", option.minimum, option.maximum,
                          *option.values == '\0' ? "" : " or ", option.values);
    const char* otherwise = *option.otherwise == '\0' ? "unset" : option.otherwise;
    if (roff) {
      out += fmt::format(".TP\n\\fB{}\\fP=\\fI{}\\fP (default: {})\n{}\n", option.variable,
                         roff_text(values), roff_text(otherwise), roff_text(option.help));
      continue;
    }
    out += fmt::format("\n{}={}   (default: {})\n", option.variable, values, otherwise);
    out += wrapped(option.help, 4, 80);
  }
  return out;
}

std::string overview() {
  std::string out =
      R"(memlog: shows which call stacks of a program hold memory, from reports of libmtrace.so

  memlog run ./app                           run a program; print a summary at its end
  LD_PRELOAD=/path/to/libmtrace.so ./app &   trace a program
  memlog report app                          ask it for a report: changes since the last one
  memlog show                                read the report
)";
  for (const CommandGroup& group : command_groups()) {
    out += fmt::format("\n{}:\n", group.title);
    for (const Command* command : group.commands) {
      out += fmt::format("  {:<11} {}\n", command->manual.name, command->manual.purpose);
    }
  }
  out +=
      R"(
memlog COMMAND --help describes a command, memlog help options the library's options.
memlog --version prints the version.
)";
  return out;
}

constexpr char kLibraryCode[] =
    R"(# What memlog takes for library code. Of each stack, the first function of own code comes first:
# what is not listed here. The rest is folded. --library and --own take files in this format:
#   function:REGEX   the function's name, without return type, template arguments and parameters
#   source:REGEX     its source file, with or without the line
#   module:REGEX     the path of its module
#   any:REGEX        any of these

)";

int run_help(const Arguments& arguments, const Streams& streams) {
  if (arguments.has("--complete")) {
    print(streams, offers(arguments.choice("--complete"), arguments.operands()));
    return kGood;
  }
  if (arguments.operands().size() > 1)
    throw UsageError("help: more than one topic given: name one");
  if (arguments.operands().empty()) {
    if (arguments.has("--completion")) {
      print(streams, completion(arguments.choice("--completion")));
    } else {
      print(streams, arguments.has("--roff") ? command_pages() : overview());
    }
    return kGood;
  }
  const std::string& topic = arguments.operands()[0];
  if (arguments.has("--completion") || (arguments.has("--roff") && topic != "options")) {
    throw UsageError("help: --completion and --roff cannot be used with a command");
  }
  if (topic == "options") {
    print(streams, library_options(arguments.has("--roff")));
    return kGood;
  }
  if (topic == "library-code") {
    print(streams, kLibraryCode + analyze::library_table());
    return kGood;
  }
  std::vector<std::string> topics = {"options", "library-code"};
  for (const Command* command : all_commands()) {
    if (topic == command->manual.name) {
      print(streams, manual_text(command->manual, manual_width(streams.columns)));
      return kGood;
    }
    topics.emplace_back(command->manual.name);
  }
  const std::string meant = nearest(topic, topics);
  throw UsageError(fmt::format("help: unknown topic {} ({})", topic,
                               meant.empty() ? fmt::format("there are: {}", fmt::join(topics, ", "))
                                             : fmt::format("did you mean {}?", meant)));
}

}  // namespace

const Command& help_command() {
  static const Command command = {{"help",
                                   "describe the commands, or the options of libmtrace.so",
                                   "\nCOMMAND\noptions\nlibrary-code\n--completion bash|zsh|fish",
                                   R"(
Without a topic, lists the commands. With the name of a command, prints what its --help prints.
`memlog help options` prints the environment variables that libmtrace.so reads, with their ranges
and defaults. `memlog help library-code` prints what counts as library code, a file for --library
and --own to start from.
)",
                                   {{"--completion", "", "SHELL",
                                     R"(Print a completion script for bash, zsh or fish. make
                                     install installs it.)",
                                     "bash|zsh|fish"},
                                    {"--complete", "", "SHELL",
                                     R"(For that script: print what to offer for the last of the
                                     words that follow, which stand behind "memlog".)",
                                     "bash|zsh|fish"},
                                    {"--roff", "", "",
                                     R"(Print the source of the manual page of the commands, or of
                                     the library's options.)"},
                                    kNoPagerOption},
                                   "0: printed; 2: unknown topic.",
                                   R"(  memlog help show
  memlog help options
  memlog help library-code >mine.txt
  source <(memlog help --completion bash)
)"},
                                  run_help};
  return command;
}

}  // namespace mtrace::cli
