// Random programs in random settings; each process's own ledger against its memlogs. Half a minute
// in `make check`. SEED: where to begin.
#include "host_test.h"

namespace mtrace::test {
namespace {

class SoakTest : public HostTest {
 protected:
  void run_seed(unsigned seed) {
    constexpr long kOperations = 20000;  // of each thread
    Command command = seed % 5 == 0 ? named({}) : traced({});
    command.argv = {program("soak"), std::to_string(seed), std::to_string(kOperations),
                    program("plugin_first.so")};
    const char* const kDepths[] = {"10", "4", "64", "128"};
    command.env["MTRACE_DEPTH"] = kDepths[seed / 2 % 4];
    const char* const kEntries[] = {"net", "active", "all"};
    command.env["MTRACE_ENTRIES"] = kEntries[seed / 3 % 3];
    if (seed % 4 == 1) command.env["MTRACE_MMAP"] = "1";
    if (seed % 7 == 3) command.env["MTRACE_FILL"] = "0xa5";
    // The whole tcmalloc walks with libunwind under its lock, which waits for the loader, which
    // frees in dlclose: threads that load and unload stand still for ever, with us or without.
    const char* const kBehind[] = {"", "", "", ":libjemalloc.so.2", ":libtcmalloc_minimal.so.4"};
    command.env["LD_PRELOAD"] += kBehind[seed % 5];
    std::string settings = "seed " + std::to_string(seed) + ":";
    for (const auto& [name, value] : command.env) {
      if (name.starts_with("MTRACE_") || name == "LD_PRELOAD") settings += " " + name + "=" + value;
    }
    SCOPED_TRACE(settings);
    const Result result = expect_exit(run(command));
    EXPECT_EQ(result.err, "");
    for (const std::string& line : lines_of(result.out)) compare(line);
    for (const auto& [name, logs] : all_logs()) {
      reports_ += static_cast<long>(logs.size());
      operations_ += logs.back().amount("allocated").blocks;
      EXPECT_HAS(logs.back().get("lost"), " stacks=0 blocks=0 ");
    }
    ++runs_;
    clear_out();
  }

  // "ledger PID SITE:BYTES:BLOCKS ..." against the memlogs of that process.
  void compare(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    pid_t pid = 0;
    if (!(words >> word >> pid) || word != "ledger") return;
    Sites told;
    while (words >> word) {
      const size_t colon = word.find(':');
      const size_t second = word.find(':', colon + 1);
      const Amount amount = {std::stol(word.substr(colon + 1)), std::stol(word.substr(second + 1))};
      if (amount != Amount{}) told[word.substr(0, colon)] = amount;
    }
    std::vector<Memlog> logs = logs_of(pid);
    for (Memlog& log : logs) {
      // An allocator's mappings stand with the stack of the allocation that needed them.
      std::erase_if(log.entries, [](const Entry& entry) { return !entry.kind.empty(); });
    }
    const Sites found = site_sums(logs, program("soak"), program("soak"));
    EXPECT_EQ(found, told) << "process " << pid << "\nfound:\n"
                           << describe(found) << "told:\n"
                           << describe(told);
    ++ledgers_;
  }

  long runs_ = 0;
  long reports_ = 0;
  long ledgers_ = 0;
  long operations_ = 0;
};

TEST_F(SoakTest, RandomPrograms) {
  const char* const given = std::getenv("SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atol(given)) : 1;
  const unsigned end = first + 15 * static_cast<unsigned>(longer());
  for (unsigned seed = first; seed != end && !HasFailure(); ++seed) run_seed(seed);
  printf("soak: seeds from %u, %ld programs, %ld processes, %ld reports, %ld allocations\n", first,
         runs_, ledgers_, reports_, operations_);
}

}  // namespace
}  // namespace mtrace::test
