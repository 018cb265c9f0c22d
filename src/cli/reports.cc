#include "cli/reports.h"

#include <fmt/format.h>

#include <stdexcept>

#include "cli/filter_options.h"
#include "cli/inputs.h"
#include "profile/catalog.h"
#include "profile/reader.h"

namespace mtrace::cli {

Reports::Reports(const char* command, const Arguments& arguments)
    : filter_(read_filter(command, arguments)),
      resolver_(search_path(arguments)),
      resolves_(!arguments.has("--no-resolve")) {}

std::vector<std::string> Reports::files(const std::vector<std::string>& operands, bool all) {
  if (!operands.empty()) return operands;
  const std::string directory = profile::report_directory();
  if (all) {
    std::vector<std::string> files;
    for (const profile::Listed& listed : profile::list_memlogs(directory)) {
      files.push_back(listed.path);
    }
    if (!files.empty()) return files;
  } else if (const auto newest = profile::newest_report(directory)) {
    return {*newest};
  }
  throw std::runtime_error(
      fmt::format("no report in {}", directory == "." ? "the current directory" : directory));
}

std::optional<profile::Memlog> Reports::read(const std::string& file, analyze::LeftOut& left_out) {
  profile::Memlog memlog = profile::read_path(file);
  if (!filter_.takes(memlog.header)) return std::nullopt;
  if (resolves_ && memlog.header.resolved != profile::Resolved::kYes) resolver_.resolve(memlog);
  left_out.add(filter_.apply(memlog));
  return memlog;
}

std::vector<profile::Memlog> Reports::read_all(const std::vector<std::string>& files,
                                               analyze::LeftOut& left_out) {
  std::vector<profile::Memlog> memlogs;
  memlogs.reserve(files.size());
  for (const std::string& file : files) {
    if (auto memlog = read(file, left_out)) memlogs.push_back(std::move(*memlog));
  }
  if (memlogs.empty()) throw std::runtime_error(kNoneChosen);
  return memlogs;
}

}  // namespace mtrace::cli
