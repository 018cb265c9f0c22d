#include "text/run_summary.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <tuple>

#include "collect/catalog.h"
#include "profile/reader.h"
#include "profile/text.h"
#include "symbolize/symbolizer.h"
#include "target/process.h"
#include "text/header_text.h"
#include "text/listing.h"

namespace mtrace::text {
namespace {

constexpr size_t kStacks = 5;
constexpr char kExit[] = "exit";

std::string file_names(const std::vector<std::string>& files) {
  return files.size() == 1 ? files[0] : fmt::format("{} to {}", files.front(), files.back());
}

}  // namespace

std::string just_before_now() {
  using std::chrono::microseconds;
  const auto time = std::chrono::system_clock::now() - std::chrono::milliseconds(100);
  const auto since = std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(since / 1000000)), since % 1000000);
}

std::vector<std::string> reports_of(const std::string& directory, pid_t pid,
                                    const std::string& begun) {
  std::vector<collect::Listed> found;
  for (collect::Listed& listed : collect::list_memlogs(directory)) {
    if (listed.pid == pid && listed.started >= begun) found.push_back(std::move(listed));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.started, a.seq) < std::tie(b.started, b.seq);
  });
  std::vector<std::string> files;
  for (const collect::Listed& listed : found) {
    if (listed.started == found.back().started) files.push_back(listed.path);
  }
  return files;
}

size_t reports_of_others(const std::string& directory, pid_t pid, const std::string& begun) {
  const std::vector<collect::Listed> all = collect::list_memlogs(directory);
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const auto& listed) {
    return listed.pid != pid && listed.started >= begun;
  }));
}

std::string end_text(int status) {
  if (WIFEXITED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("was killed by SIG{} ({})", target::signal_name(signal), ::strsignal(signal));
}

std::string run_summary(const std::vector<std::string>& files, const Style& style) {
  symbolize::Symbolizer resolver({});
  std::vector<profile::Memlog> memlogs;
  for (const std::string& file : files) {
    memlogs.push_back(profile::read_path(file));
    // One more may follow the report at exit, which does not matter any more.
    if (memlogs.size() > 1 && memlogs[memlogs.size() - 2].header.trigger == kExit) {
      memlogs.pop_back();
      break;
    }
    if (memlogs.back().header.resolved != profile::Resolved::kYes) resolver.resolve(memlogs.back());
  }
  std::vector<analyze::ProcessSum> sums = analyze::sum_processes(memlogs);
  analyze::ProcessSum& process = sums.back();
  const profile::Header& last = process.last;
  std::string out = coverage_remarks(last, style) + peak_text(last, style);
  const bool at_exit = last.trigger == kExit;
  out += fmt::format("{} {} in {} blocks\n",
                     at_exit ? "live at exit" : "live at the last report, which was not at exit:",
                     bytes_text(last.live.bytes, style, false), last.live.blocks);
  for (const std::string& why : process.incomplete) out += remark(plain(why), style);

  analyze::Table& table = process.table;
  Context context;
  std::vector<analyze::Row>& rows = table.rows();
  std::erase_if(rows, [](const analyze::Row& row) { return !row.kind.empty() || row.bytes <= 0; });
  context.growth = analyze::gross_growth(rows);
  analyze::sort(rows, analyze::Order::kBytes);
  const size_t all = rows.size();
  if (all > kStacks) rows.resize(kStacks);
  if (all != 0) {
    out += all > kStacks ? fmt::format("the {} largest of {} stacks:\n\n", kStacks, all)
                         : std::string("by stack:\n\n");
    out += entries_text(table, context, style) + '\n';
  }
  return out + fmt::format("reports: {}\n", plain(file_names(files)));
}

}  // namespace mtrace::text
