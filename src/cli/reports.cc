#include "cli/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cli/filter_options.h"
#include "cli/inputs.h"
#include "profile/error.h"
#include "profile/reader.h"

namespace mtrace::cli {

Reports::Reports(const char* command, const Arguments& arguments)
    : filter_(read_filter(command, arguments)),
      resolver_(search_path(arguments)),
      resolves_(!arguments.has("--no-resolve")) {}

void Reports::exclude(std::vector<analyze::StackPattern> patterns) {
  for (analyze::StackPattern& pattern : patterns) filter_.exclude.push_back(std::move(pattern));
}

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

void Reports::finish(profile::Memlog& memlog, analyze::LeftOut& left_out) {
  if (resolves_ && memlog.header.resolved != profile::Resolved::kYes) resolver_.resolve(memlog);
  left_out.add(filter_.apply(memlog));
}

std::optional<profile::Memlog> Reports::read(const std::string& file, analyze::LeftOut& left_out) {
  profile::Memlog memlog = profile::read_path(file);
  if (!filter_.takes(memlog.header)) return std::nullopt;
  finish(memlog, left_out);
  return memlog;
}

profile::Memlog Reports::read_any(const std::string& file, analyze::LeftOut& left_out) {
  profile::Memlog memlog = profile::read_path(file);
  finish(memlog, left_out);
  return memlog;
}

profile::Listed Reports::look(const std::string& file) {
  if (auto listed = profile::list_memlog(file)) return *listed;
  const profile::Header header = profile::read_path(file).header;  // says what is wrong with it
  return {file, header.program, header.started, header.pid, header.seq};
}

int Reports::each(const std::vector<std::string>& files, const Streams& streams,
                  const Action& action) {
  int status = kGood;
  bool any = false;
  for (const std::string& file : files) {
    try {
      analyze::LeftOut left_out;
      auto memlog = read(file, left_out);
      if (!memlog) continue;
      any = true;
      action(*memlog, left_out);
    } catch (const profile::FormatError& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kUnusable;
    } catch (const std::exception& error) {
      complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    }
  }
  if (!any && status == kGood) throw std::runtime_error(kNoneChosen);
  return status;
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

std::vector<analyze::ProcessSum> Reports::sum(const std::vector<std::string>& files,
                                              analyze::LeftOut& left_out) {
  return analyze::sum_processes(read_all(files, left_out), filter_.chooses_reports());
}

std::string title(const profile::Memlog& memlog) {
  return fmt::format("==> {} <==\n", memlog.name);
}

}  // namespace mtrace::cli
