#include "host_test.h"

namespace mtrace::test {
namespace {

constexpr char kSitePrefix[] = "site_";

template <typename NameOf>
Sites sum_sites(const std::vector<Memlog>& logs, NameOf name_of) {
  Sites sums;
  for (const Memlog& log : logs) {
    for (const Entry& entry : log.entries) {
      if (entry.kind == "failed") continue;  // holds nothing
      for (const Frame& frame : entry.frames) {
        // Parts of a function that the compiler moved away: site_x.cold.
        std::string name = name_of(frame);
        name.resize(std::min(name.size(), name.find('.')));
        if (!name.starts_with(kSitePrefix)) continue;
        sums[name] += Amount{entry.bytes, entry.blocks};
        break;
      }
    }
  }
  std::erase_if(sums, [](const auto& site) { return site.second == Amount{}; });
  return sums;
}

}  // namespace

HostTest::HostTest() : out_(temp_ / "out") { fs::create_directory(out_); }

void HostTest::TearDown() { check_memlogs(out_); }

Command HostTest::plain(Words argv) const {
  return Command{.argv = std::move(argv),
                 .env = plain_environment(temp()),
                 .directory = temp(),
                 .input = "",
                 .output_file = "",
                 .before_exec = nullptr};
}

Command HostTest::traced(Words argv) const {
  Command command = named(std::move(argv));
  command.env["MTRACE_RESOLVER"] = "none";
  unnamed_ = false;
  return command;
}

Command HostTest::plain(Words argv, const Settings& more) const {
  return with(plain(std::move(argv)), more);
}

Command HostTest::traced(Words argv, const Settings& more) const {
  return with(traced(std::move(argv)), more);
}

Command HostTest::named(Words argv, const Settings& more) const {
  return with(named(std::move(argv)), more);
}

Result HostTest::expect_same(const Command& traced) const {
  Command without = traced;
  std::string& preload = without.env["LD_PRELOAD"];
  preload.erase(0, library().size() + 1);
  if (preload.empty()) without.env.erase("LD_PRELOAD");
  const Result with = run(traced);
  const Result expected = run(without);
  EXPECT_EQ(with.out, expected.out);
  EXPECT_EQ(with.err, expected.err);
  EXPECT_EQ(with.status, expected.status) << with.how() << ", not " << expected.how();
  return with;
}

Command HostTest::tool(Words arguments) const {
  Command command = plain(joined({memlog_tool()}, arguments));
  command.directory = out();
  command.env["MTRACE_RESOLVER"] = "none";
  return command;
}

Result HostTest::memlog(Words arguments) const { return run(tool(std::move(arguments))); }

Command HostTest::named(Words argv) const {
  Command command = plain(std::move(argv));
  command.env["LD_PRELOAD"] = library();
  command.env["MTRACE_OUTPUT"] = out_;
  command.env["MTRACE_EXIT_WAIT"] = "120";
  // All of these tests with a mapped ledger; those of what a child inherits have to fail.
  if (getenv("MTRACE_TEST_LEDGER") != nullptr) command.env["MTRACE_LEDGER"] = temp();
  unnamed_ = !emulator().empty();  // qemu-user refuses a clone(2) that shares memory only
  return command;
}

std::map<std::string, std::vector<Memlog>> HostTest::all_logs() const {
  for (const auto& file : fs::directory_iterator(out_)) {
    if (!unnamed_ || file.path().extension() != ".memlog") continue;
    EXPECT_TRUE(memlog({"resolve", file.path()}).exited(0)) << file.path();
  }
  return read_directory(out_);
}

std::vector<Memlog> HostTest::logs_of(const std::string& name) const {
  std::vector<Memlog> found;
  int processes = 0;
  for (auto& [process, logs] : all_logs()) {
    if (process.substr(0, process.rfind('-')) != name) continue;
    found = std::move(logs);
    ++processes;
  }
  EXPECT_EQ(processes, 1) << "processes with memlogs of the name " << name;
  return found;
}

std::vector<Memlog> HostTest::logs_of(pid_t pid) const {
  std::vector<Memlog> found;
  for (auto& [process, logs] : all_logs()) {
    if (logs[0].number("pid") == pid) found.insert(found.end(), logs.begin(), logs.end());
  }
  return found;
}

std::string HostTest::report_path(const std::string& name, pid_t pid, int seq) const {
  return out_ + "/" + name + "-" + std::to_string(pid) + "-" + std::to_string(seq) + ".memlog";
}

void HostTest::wait_for_report(const std::string& name, pid_t pid, int seq) const {
  const std::string path = report_path(name, pid, seq);
  wait_until(path, [&] { return fs::exists(path); });
}

void HostTest::wait_for_names(const std::string& name, pid_t pid, int last) const {
  for (int seq = 1; seq <= last; ++seq) {
    const std::string path = report_path(name, pid, seq);
    wait_until("names in " + path,
               [&] { return fs::exists(path) && read_memlog(path).get("resolved") == "yes"; });
  }
}

void HostTest::check_memlogs(const std::string& directory) {
  for (const auto& file : fs::directory_iterator(directory)) {
    const std::string name = file.path().filename();
    EXPECT_TRUE(name.ends_with(".memlog") || name.ends_with(".timeline") ||
                name.ends_with(".events"))
        << "left behind: " << file.path();
    struct stat info;
    if (stat(file.path().c_str(), &info) == 0) {
      EXPECT_EQ(info.st_mode & 07777, 0600u) << file.path();
    }
  }
  try {
    for (const auto& [process, logs] : read_directory(directory)) {
      for (const Memlog& log : logs) {
        for (const std::string& line : complaints(log)) ADD_FAILURE() << line;
        const std::string file = fs::path(log.path).filename();
        EXPECT_EQ(file, process + "-" + log.get("seq") + ".memlog");
        std::string pid = process.substr(process.rfind('-') + 1);
        pid = pid.substr(0, pid.find('.'));
        EXPECT_EQ(pid, log.get("pid")) << file;
      }
      for (const std::string& line : series_complaints(logs)) ADD_FAILURE() << line;
    }
  } catch (const MemlogError& error) {
    ADD_FAILURE() << error.what();
  }
}

Command HostTest::tool(Words arguments, const Settings& more) const {
  return with(tool(std::move(arguments)), more);
}

std::string HostTest::behind(const std::string& other) {
  return other.empty() ? library() : library() + ":" + other;
}

std::vector<Memlog> HostTest::reports_of(const Command& command, size_t count) const {
  const Result result = expect_exit(run(command));
  EXPECT_EQ(result.err, "");
  return logs_of(result.pid, count);
}

void HostTest::clear_out() const {
  check_memlogs(out());
  fs::remove_all(out());
  fs::create_directory(out());
}

Sites site_sums(const std::vector<Memlog>& logs, const std::string& module,
                const std::string& symbols_file) {
  // Most tests ask for those of one file again and again.
  static std::map<std::pair<std::string, fs::file_time_type>, Symbols> known;
  const Symbols& symbols =
      known.try_emplace({symbols_file, fs::last_write_time(symbols_file)}, symbols_file)
          .first->second;
  return sum_sites(logs, [&](const Frame& frame) {
    return frame.module == module ? symbols.at(frame.offset) : std::string();
  });
}

Sites named_site_sums(const std::vector<Memlog>& logs) {
  return sum_sites(logs, [](const Frame& frame) {
    return frame.function.substr(0, frame.function.find_first_of("(:[ "));
  });
}

std::map<int, Sites> told_sites(const std::string& output) {
  std::map<int, Sites> phases;
  for (const std::string& line : lines_of(output)) {
    std::istringstream words(line);
    std::string tag;
    std::string name;
    int phase;
    Amount amount;
    if (words >> tag && tag == "site" && words >> phase >> name >> amount.bytes >> amount.blocks) {
      phases[phase][name] = amount;
    }
  }
  return phases;
}

Sites changes(const Sites& earlier, const Sites& later) {
  Sites result = later;
  for (const auto& [name, amount] : earlier) {
    result[name].bytes -= amount.bytes;
    result[name].blocks -= amount.blocks;
  }
  std::erase_if(result, [](const auto& site) { return site.second == Amount{}; });
  return result;
}

Symbols::Symbols(const std::string& path) {
  const Result result = run({.argv = {"/usr/bin/nm", "--defined-only", "--print-size", path},
                             .env = plain_environment("/"),
                             .directory = "",
                             .input = "",
                             .output_file = "",
                             .before_exec = nullptr});
  if (!result.exited(0)) throw std::runtime_error("nm " + path + ": " + result.err);
  for (const std::string& line : lines_of(result.out)) {
    std::istringstream words(line);
    std::string address;
    std::string size;
    std::string type;
    std::string name;
    if (!(words >> address >> size >> type >> name)) continue;
    if (type != "T" && type != "t" && type != "W" && type != "w") continue;
    functions_[std::stoull(address, nullptr, 16)] = {std::stoull(size, nullptr, 16), name};
  }
}

std::string Symbols::at(uint64_t address) const {
  auto after = functions_.upper_bound(address);
  if (after == functions_.begin()) return "";
  const auto& [start, function] = *--after;
  return address < start + function.first ? function.second : "";
}

std::string describe(const Sites& sites) {
  std::string text;
  for (const auto& [name, amount] : sites) text += "  " + name + " " + describe(amount) + "\n";
  return text;
}

void expect_phases(const std::string& output, const std::vector<Memlog>& logs,
                   const std::string& module, const std::string& symbols_file) {
  const std::map<int, Sites> phases = told_sites(output);
  EXPECT_EQ(logs.size(), phases.size() + 1) << output;
  Sites before;
  for (const auto& [phase, told] : phases) {
    const Memlog& log = logs.at(static_cast<size_t>(phase - 1));
    EXPECT_EQ(describe(changes(before, told)), describe(site_sums({log}, module, symbols_file)))
        << "phase " << phase << ", told and found in " << log.path;
    before = told;
  }
}

Command with(Command command, const Settings& more) {
  for (const auto& [name, value] : more) command.env[name] = value;
  return command;
}

Result Ready::end(int signal) {
  send(signal);
  return wait();
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Settings setting(const std::string& text) {
  const size_t equals = text.find('=');
  return {{text.substr(0, equals), text.substr(equals + 1)}};
}

std::string named_after(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  name.resize(std::min(name.size(), name.find_first_of(".=")));
  if (name.starts_with("lib")) name.erase(0, 3);
  return name.empty() ? "glibc" : name;
}

Words names_in(const std::string& directory, const std::string& ending) {
  Words names;
  for (const auto& item : fs::directory_iterator(directory)) {
    const std::string name = item.path().filename();
    if (name.ends_with(ending)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Words paths_in(const std::string& directory, const std::string& ending) {
  Words paths = names_in(directory, ending);
  for (std::string& path : paths) path.insert(0, directory + '/');
  return paths;
}

}  // namespace mtrace::test
