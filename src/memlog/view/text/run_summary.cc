#include "view/text/run_summary.h"

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "model/symbols/symbolizer.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/analyze/groups.h"
#include "view/analyze/table.h"
#include "view/reports/reports.h"
#include "view/text/header_text.h"
#include "view/text/stack_names.h"

namespace mtrace::text {
namespace {

constexpr size_t kFunctions = 5;  // of a list
constexpr size_t kProcesses = 3;  // with lists
constexpr uint64_t kNear = 4;     // as large as 1/kNear of the largest
constexpr size_t kLines = 10;     // about further processes
constexpr char kExit[] = "exit";
constexpr char kRecovered[] = "recovered";

using reports::RunProcess;

std::string name_of(const RunProcess& process) {
  return fmt::format("{} ({})", plain(util::base_name(process.program)), process.pid);
}

uint64_t size_of(const RunProcess& process) { return std::max(process.peak, process.resident); }

// Where the program's allocations failed.
std::string failed_text(const analyze::Table& table, const Style& style) {
  int64_t all = 0;
  const analyze::Row* most = nullptr;
  for (const analyze::Row& row : table.rows()) {
    const int64_t failed = analyze::quantity(row, analyze::Order::kFailed);
    if (failed == 0) continue;
    all += failed;
    if (most == nullptr || failed > analyze::quantity(*most, analyze::Order::kFailed)) most = &row;
  }
  if (most == nullptr || most->frames.empty()) return {};
  return remark(fmt::format("{} failed: no memory; {} of them at {} (memlog show --by failed)",
                            count_text(static_cast<uint64_t>(all), "allocation"),
                            analyze::quantity(*most, analyze::Order::kFailed),
                            stack_line(table, *most, style)),
                style);
}

std::string resident_text(const RunProcess& process, const Style& style) {
  if (process.resident == 0) return {};
  return ", resident at most " + bytes_text(static_cast<int64_t>(process.resident), style, false);
}

// The reports, and the commands that show more of them.
std::string next_text(const RunProcess& process, const profile::Header& last) {
  const std::string& file = process.files.back();
  std::string all = util::shell_word(file);
  if (process.files.size() > 1) {
    all = util::shell_word(file.substr(0, file.rfind('-'))) + "-*" + format::kSuffix +
          (file.ends_with(format::kCompressedSuffix) ? "*" : "");
  }
  std::string out =
      fmt::format("reports: {}\n  what is live   memlog show --sum {}\n", plain(file), all);
  if (last.peak)
    out += fmt::format("  the peak       memlog show --peak {}\n", util::shell_word(file));
  if (reports::timeline_beside(file, last)) {
    const std::string page = util::base_name(file.substr(0, file.rfind('-'))) + ".html";
    out += fmt::format("  over time      memlog export -f html -o {} {}\n", util::shell_word(page),
                       all);
  }
  return out;
}

analyze::ProcessSum sum_of(const RunProcess& process) {
  symbols::Symbolizer resolver({});
  std::vector<profile::Memlog> memlogs;
  for (const std::string& file : process.files) {
    memlogs.push_back(profile::read_path(file));
    // One more may follow the report at exit, which does not matter any more.
    if (memlogs.size() > 1 && memlogs[memlogs.size() - 2].header.trigger == kExit) {
      memlogs.pop_back();
      break;
    }
    if (symbols::Symbolizer::is_needed(memlogs.back())) resolver.resolve(memlogs.back());
  }
  return std::move(analyze::sum_processes(memlogs).back());
}

// A function, and what the stacks hold that it is responsible for.
struct Share {
  int64_t held = 0;
  int64_t blocks = 0;
  const analyze::Row* largest = nullptr;
  std::vector<const analyze::Row*> rows;
};

// The function, and the callers that most of its bytes share.
std::string callers_text(const analyze::Table& table, const Share& share, analyze::Order order,
                         const Style& style) {
  constexpr size_t kNames = 5;
  constexpr size_t kColumns = 90;
  using Names = std::vector<std::string>;
  const Names names = caller_names(table, *share.largest, kNames, style);
  std::vector<std::pair<Names, int64_t>> all;
  for (const analyze::Row* row : share.rows) {
    all.emplace_back(caller_names(table, *row, kNames, style), analyze::quantity(*row, order));
  }
  std::string out = names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    const auto end = names.begin() + static_cast<ptrdiff_t>(i) + 1;
    int64_t alike = 0;
    for (const auto& [other, held] : all) {
      if (other.size() > i && std::equal(names.begin(), end, other.begin())) alike += held;
    }
    if (alike < share.held / 2) return out + " < (several callers)";
    if (out.size() + names[i].size() > kColumns) break;
    out += " < " + names[i];
  }
  return out;
}

// The source line of the largest stack, what all of them hold, and the share of the largest.
std::string share_line(const analyze::Table& table, const Share& share, const analyze::Group& group,
                       analyze::Order order, const Style& style) {
  const profile::Frames& frames = share.largest->frames;
  const size_t at = style.responsible->of(frames, table.modules());
  const bool has_line = !frames.empty() && !frames[at].source.empty() &&
                        !style.responsible->missing(frames, table.modules(), share.largest->depth);
  const std::string source = has_line ? frames[at].source.text() : group.source;
  std::string out = coloured(plain(source), kFaint, style);
  if (source != group.source) out += " and other lines";
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  // Of the peak, blocks are not known.
  const std::string stacks = share.rows.size() > 1 ? count_text(share.rows.size(), "stack") : "";
  const auto blocks = static_cast<uint64_t>(std::max<int64_t>(share.blocks, 0));
  if (order != analyze::Order::kPeak) {
    add(count_text(blocks, "block") + (stacks.empty() ? "" : " in " + stacks));
  } else if (!stacks.empty()) {
    add(stacks);
  }
  if (!stacks.empty()) {
    out += fmt::format(", the largest {}",
                       share_text(static_cast<uint64_t>(analyze::quantity(*share.largest, order)),
                                  static_cast<uint64_t>(share.held)));
  }
  return out;
}

// Where libraries allocate most of what is held, on behalf of one function: the functions at which
// its stacks part, further in, of those that hold most. Empty: they do not.
std::string parts_text(const analyze::Table& table, const Share& share, analyze::Order order,
                       const Style& style) {
  constexpr size_t kParts = 3;
  struct Path {
    const analyze::Row* row;
    size_t at;
  };
  struct Part {
    int64_t held = 0;
    std::vector<Path> paths;
  };
  std::vector<Path> paths;
  for (const analyze::Row* row : share.rows) {
    paths.push_back({row, style.responsible->of(row->frames, table.modules())});
  }
  for (int64_t held = share.held;;) {
    std::map<std::string, Part> parts;
    for (const Path& path : paths) {
      if (path.at < 2) continue;  // it calls what allocates
      const profile::Frame& frame = path.row->frames[path.at - 1];
      if (frame.function.empty()) continue;
      Part& part = parts[function_text(table, frame, style)];
      part.held += analyze::quantity(*path.row, order);
      part.paths.push_back({path.row, path.at - 1});
    }
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (const auto& [name, part] : parts) sorted.emplace_back(part.held, name);
    std::sort(sorted.rbegin(), sorted.rend());
    std::erase_if(sorted, [&](const auto& part) { return part.first < share.held / 20; });
    if (sorted.empty()) return {};
    if (sorted[0].first >= held / 5 * 4) {  // most of them go the same way
      held = sorted[0].first;
      paths = std::move(parts[sorted[0].second].paths);
      continue;
    }
    std::string out;
    for (size_t i = 0; i < std::min(sorted.size(), kParts); ++i) {
      out += fmt::format(
          "{}{} {}", i == 0 ? "" : ", ", sorted[i].second,
          share_text(static_cast<uint64_t>(sorted[i].first), static_cast<uint64_t>(share.held)));
    }
    return out;
  }
}

// Takes what runtimes keep out of a table, and returns it.
std::vector<analyze::Row> take_runtime(analyze::Table& table) {
  std::vector<analyze::Row>& rows = table.rows();
  const auto kept = std::stable_partition(rows.begin(), rows.end(), [&](const analyze::Row& row) {
    return !row.kind.empty() || !analyze::kept_by_runtimes(row.frames, table.modules());
  });
  std::vector<analyze::Row> out(std::make_move_iterator(kept), std::make_move_iterator(rows.end()));
  rows.erase(kept, rows.end());
  return out;
}

// What the rows that hold something hold together.
int64_t held_by(const std::vector<analyze::Row>& rows, analyze::Order order) {
  int64_t sum = 0;
  for (const analyze::Row& row : rows) {
    if (row.kind.empty()) sum += std::max<int64_t>(analyze::quantity(row, order), 0);
  }
  return sum;
}

// Whose code has no names, where that hides much of `all` that is held.
std::string nameless_text(const analyze::Table& table, analyze::Order order, int64_t all,
                          const Style& style) {
  constexpr int64_t kMuch = 10;  // one part in so many
  std::map<uint32_t, int64_t> held;
  for (const analyze::Row& row : table.rows()) {
    if (!row.kind.empty() || analyze::quantity(row, order) <= 0) continue;
    const auto nameless =
        std::find_if(row.frames.begin(), row.frames.end(), [](const profile::Frame& frame) {
          return frame.function.empty() && frame.place == profile::Place::kModule;
        });
    if (nameless != row.frames.end()) held[nameless->module] += analyze::quantity(row, order);
  }
  const auto most = std::max_element(
      held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == held.end() || most->second < all / kMuch) return {};
  const std::string& path = table.modules()[most->first].path;
  return remark(
      fmt::format("{} goes through functions of {} without names: {}",
                  share_text(static_cast<uint64_t>(most->second), static_cast<uint64_t>(all)),
                  plain(util::base_name(path)), symbols::names_from(path)),
      style);
}

// The functions that hold most by `order`, under a title that begins with `what`; `all`: what
// shares are of; `kept`: what runtimes keep, which is not listed. Empty: there is none.
std::string functions_text(analyze::Table table, const std::vector<analyze::Row>& kept,
                           analyze::Order order, const std::string& what, int64_t all,
                           const Style& style) {
  std::erase_if(table.rows(), [&](const analyze::Row& row) {
    return !row.kind.empty() || analyze::quantity(row, order) <= 0;
  });
  analyze::Groups groups(analyze::GroupBy::kFunction, style.responsible);
  std::vector<Share> shares;
  for (const analyze::Row& row : table.rows()) {
    const size_t place = groups.place(row, table.modules());
    shares.resize(std::max(shares.size(), place + 1));
    Share& share = shares[place];
    share.rows.push_back(&row);
    share.blocks += row.blocks;
    share.held += analyze::quantity(row, order);
    if (share.largest == nullptr ||
        analyze::quantity(row, order) > analyze::quantity(*share.largest, order)) {
      share.largest = &row;
    }
  }
  if (shares.empty()) return {};
  std::vector<size_t> sorted(shares.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](size_t a, size_t b) { return shares[a].held > shares[b].held; });
  std::string out = fmt::format(
      "\n{} by function{} ({}):\n", what,
      sorted.size() > kFunctions ? fmt::format(", the {} largest of {}", kFunctions, sorted.size())
                                 : "",
      count_text(table.rows().size(), "stack"));
  sorted.resize(std::min(sorted.size(), kFunctions));
  for (const size_t place : sorted) {
    const Share& share = shares[place];
    out += fmt::format("{:>14} {:>6}  {}\n{:>23}{}\n", bytes_text(share.held, style, false),
                       share_text(static_cast<uint64_t>(share.held),
                                  static_cast<uint64_t>(std::max<int64_t>(all, 0))),
                       callers_text(table, share, order, style), "",
                       share_line(table, share, *groups.all()[place], order, style));
    if (share.held < all / 2) continue;
    const std::string parts = parts_text(table, share, order, style);
    if (!parts.empty()) out += fmt::format("{:>23}through {}\n", "", parts);
  }
  const int64_t unlisted = held_by(kept, order);
  if (unlisted == 0) return out;
  return out + fmt::format("  not listed: {} kept by the C and C++ runtimes\n",
                           bytes_text(unlisted, style, false));
}

std::string live_text(const profile::Header& last) {
  return last.trigger == kExit        ? "live at exit"
         : last.trigger == kRecovered ? "live when it ended"
                                      : "live at the last report, which was not at exit";
}

// What is not seen of a runtime, and how it would be.
std::string runtime_text(const RunProcess& process, const analyze::Table& table,
                         const std::vector<const Runtime*>& seen, const Style& style) {
  std::string out;
  for (const Runtime& runtime : kRuntimes) {
    const bool runs =
        util::base_name(process.program).starts_with(runtime.program) ||
        std::any_of(table.modules().begin(), table.modules().end(),
                    [&](const profile::Module& module) {
                      return util::base_name(module.path).starts_with(runtime.library);
                    });
    if (!runs || std::find(seen.begin(), seen.end(), &runtime) != seen.end()) continue;
    out += remark(fmt::format("{}: memlog run {} ... ({}={})", runtime.remark, runtime.option,
                              runtime.variable, runtime.value),
                  style);
  }
  return out;
}

std::string process_text(const RunProcess& process, const std::vector<const Runtime*>& seen,
                         const Style& style) {
  analyze::ProcessSum sum = sum_of(process);
  Holders holders;
  add_holders(sum.last, sum.table, style, holders);
  const std::vector<analyze::Row> kept = take_runtime(sum.table);
  const profile::Header& last = sum.last;
  std::string out = coverage_remarks(last, style) + peak_text(last, style);
  out += fmt::format(
      "{} {} in {}\n", live_text(last), bytes_text(last.live.bytes, style, false),
      count_text(static_cast<uint64_t>(std::max<int64_t>(last.live.blocks, 0)), "block"));
  out += resident_remark(last, holders, style) + failed_text(sum.table, style);
  out += lost_remarks(last, style, false);
  for (const std::string& why : sum.incomplete) out += remark(plain(why), style);
  // Where the program was largest at its end, both lists are the same.
  const bool grew = last.peak && static_cast<int64_t>(last.peak->bytes) > last.live.bytes;
  if (grew) {
    out += functions_text(sum.table, kept, analyze::Order::kPeak, "held at the peak",
                          static_cast<int64_t>(last.peak->bytes), style);
  }
  out += functions_text(sum.table, kept, analyze::Order::kBytes,
                        (grew ? "" : "held at the peak and ") + live_text(last), last.live.bytes,
                        style);
  out += runtime_text(process, sum.table, seen, style);
  const analyze::Order largest = grew ? analyze::Order::kPeak : analyze::Order::kBytes;
  const int64_t all = held_by(sum.table.rows(), largest) + held_by(kept, largest);
  out += nameless_text(sum.table, largest, all, style);
  return out + '\n' + next_text(process, last);
}

bool is_shell(const std::string& program) {
  const std::string name = util::base_name(program);
  for (const char* shell : {"sh", "bash", "dash", "zsh", "ksh", "busybox"}) {
    if (name == shell) return true;
  }
  return false;
}

// The other processes by their programs, those with the largest first; and how to leave them out.
std::string smaller_text(const std::vector<RunProcess>& processes, size_t shown,
                         const Style& style) {
  struct Program {
    std::string name;
    size_t count = 0;
    const RunProcess* largest = nullptr;
  };
  std::vector<Program> programs;
  for (size_t i = shown; i < processes.size(); ++i) {
    const std::string name = plain(util::base_name(processes[i].program));
    auto known = std::find_if(programs.begin(), programs.end(),
                              [&](const Program& one) { return one.name == name; });
    if (known == programs.end()) known = programs.insert(known, {name, 0, &processes[i]});
    ++known->count;
  }
  if (programs.empty()) return {};
  std::string out = "\nothers:\n";
  for (size_t i = 0; i < std::min(programs.size(), kLines); ++i) {
    const Program& program = programs[i];
    const RunProcess& largest = *program.largest;
    const std::string peak = bytes_text(static_cast<int64_t>(largest.peak), style, false);
    out += program.count == 1
               ? fmt::format("  {}: peak {}{}, {}\n", name_of(largest), peak,
                             resident_text(largest, style), plain(largest.files.back()))
               : fmt::format("  {}: {} processes, peak at most {}{}\n", program.name, program.count,
                             peak, resident_text(largest, style));
  }
  if (programs.size() > kLines) {
    out += fmt::format("  ... {} more programs\n", programs.size() - kLines);
  }
  // "python*" for python3.11.
  std::string first = util::base_name(processes[0].program);
  const size_t letters = first.find_last_not_of("0123456789.") + 1;
  if (letters != 0 && letters < first.size()) first = first.substr(0, letters) + '*';
  if (processes.size() - shown > kLines) {
    out += fmt::format("to trace only one program: memlog run --follow {} ...\n",
                       util::shell_word(first));
  }
  return out;
}

}  // namespace

std::string run_summary(std::vector<RunProcess> processes, const std::vector<const Runtime*>& seen,
                        Style style) {
  if (style.responsible == nullptr) style.responsible = std::make_shared<analyze::Responsible>();
  // Shells that start the program are not what was to be looked at.
  const auto shells =
      std::stable_partition(processes.begin(), processes.end(),
                            [](const RunProcess& process) { return !is_shell(process.program); });
  const auto others = static_cast<size_t>(shells - processes.begin());
  const size_t most = std::min(kProcesses, others == 0 ? processes.size() : others);
  if (processes.size() == 1) return process_text(processes[0], seen, style);
  std::string out = fmt::format(
      "{} processes have reported, those with the most resident memory first{}\n", processes.size(),
      others != 0 && others != processes.size() ? ", shells last" : "");
  size_t shown = 0;
  while (shown < most && size_of(processes[shown]) >= size_of(processes[0]) / kNear) {
    const RunProcess& process = processes[shown++];
    out += '\n' + coloured(name_of(process) + resident_text(process, style), kBold, style) + '\n' +
           process_text(process, seen, style);
  }
  return out + smaller_text(processes, shown, style);
}

std::string lost_summary(profile::Memlog& lost, const char* when, size_t blocks, Style style) {
  const std::string looked = fmt::format("({} looked at)", count_text(blocks, "block"));
  if (lost.entries.empty()) {
    return fmt::format("nothing definitely lost {} {}\n", when, looked);
  }
  if (style.responsible == nullptr) style.responsible = std::make_shared<analyze::Responsible>();
  symbols::Symbolizer({}).resolve(lost);
  const profile::Header header = lost.header;
  analyze::Table table = analyze::Table::of(lost);
  const std::vector<analyze::Row> kept = take_runtime(table);
  return fmt::format("definitely lost {} {} in {} {}\n", when,
                     bytes_text(header.live.bytes, style, false),
                     count_text(static_cast<uint64_t>(header.live.blocks), "block"), looked) +
         functions_text(std::move(table), kept, analyze::Order::kBytes, "definitely lost",
                        header.live.bytes, style);
}

}  // namespace mtrace::text
