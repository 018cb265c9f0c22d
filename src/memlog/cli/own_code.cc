#include "cli/own_code.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "analyze/frame_pattern.h"
#include "profile/error.h"
#include "profile/file.h"

namespace mtrace::cli {
namespace {

bool is_file(const std::string& path) {
  struct stat state = {};
  return ::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode);
}

// A pattern says what it is for, or has no slash; what is there is a file.
bool names_file(const std::string& text) {
  for (const char* prefix : {"function:", "source:", "module:", "any:"}) {
    if (text.starts_with(prefix)) return false;
  }
  return is_file(text) || text.find('/') != std::string::npos;
}

void add_patterns(const char* command, const Arguments& arguments, const char* option,
                  analyze::FramePatterns& patterns) {
  for (const std::string& text : arguments.values(option)) {
    try {
      if (names_file(text)) {
        patterns.add(text, profile::read_file(text));
      } else {
        patterns.add_pattern(text);
      }
    } catch (const profile::FileError& error) {
      throw UsageError(fmt::format("{}: {}: {}", command, option, error.what()));
    } catch (const analyze::PatternError& error) {
      throw UsageError(fmt::format("{}: {}: {}", command, option, error.what()));
    }
  }
}

}  // namespace

analyze::ResponsiblePointer read_responsible(const char* command, const Arguments& arguments) {
  analyze::LibraryCode code;
  add_patterns(command, arguments, "--own", code.own());
  add_patterns(command, arguments, "--library", code.library());
  return std::make_shared<const analyze::Responsible>(std::move(code));
}

analyze::GroupBy read_group_by(const Arguments& arguments) {
  const std::string by = arguments.choice("--group-by");
  if (by == "function") return analyze::GroupBy::kFunction;
  if (by == "file") return analyze::GroupBy::kFile;
  if (by == "line") return analyze::GroupBy::kLine;
  if (by == "module") return analyze::GroupBy::kModule;
  return analyze::GroupBy::kStack;
}

void fold(text::Style& style, const collect::Reports& reports) {
  const analyze::Filter& filter = reports.filter();
  style.responsible = filter.all_frames ? nullptr : filter.responsible;
}

}  // namespace mtrace::cli
