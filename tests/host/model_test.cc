// Millions of random operations against a plain model: every counter of every stack, at every
// report.
#include <array>

#include "host_test.h"

namespace mtrace::test {
namespace {

constexpr const char* kKeys[] = {"allocs",    "allocated", "frees", "freed",
                                 "temporary", "live",      "slack", "peak"};
using Counters = std::array<int64_t, std::size(kKeys)>;
using Model = std::map<int64_t, Counters>;  // by path

// The path that the names of the frames spell, or -1.
int64_t path_of(const Entry& entry) {
  int64_t path = 0;
  int64_t factor = 1;
  size_t frame = 0;
  for (const char* level : {"site_", "middle_", "outer_"}) {
    size_t at = std::string::npos;
    for (; frame < entry.frames.size() && at == std::string::npos; ++frame) {
      at = entry.frames[frame].function.find(level);
    }
    if (at == std::string::npos) return -1;
    path += factor * (entry.frames[frame - 1].function[at + std::string(level).size()] - '0');
    factor *= 8;
  }
  return path;
}

Model found(const Memlog& log) {
  Model model;
  for (const Entry& entry : log.entries) {
    const int64_t path = path_of(entry);
    if (path < 0) continue;
    Counters& did = model[path];
    for (size_t i = 0; i < std::size(kKeys); ++i) {
      const auto count = entry.counts.find(kKeys[i]);
      did[i] += std::string(kKeys[i]) == "live" ? entry.live
                : count == entry.counts.end()   ? 0
                                                : count->second;
    }
  }
  return model;
}

std::map<size_t, Model> told_models(const std::string& output) {
  std::map<size_t, Model> phases;
  for (const std::string& line : lines_of(output)) {
    std::istringstream in(line);
    std::string word;
    size_t phase;
    int64_t path;
    in >> word >> phase >> path;
    Counters did = {};
    for (int64_t& count : did) in >> count;
    phases[phase][path] = did;
  }
  return phases;
}

class ModelTest : public HostTest {
 protected:
  void expect_model(const char* seed, const char* threads, const char* operations,
                    const char* phases) {
    Command command = named({program("model"), seed, threads, operations, phases});
    command.env["MTRACE_ENTRIES"] = "all";
    command.env["MTRACE_EXIT_REPORT"] = "0";
    const Result result = expect_exit(run(command));
    const std::vector<Memlog> logs = logs_of(result.pid);
    const std::map<size_t, Model> models = told_models(result.out);
    ASSERT_EQ(logs.size(), models.size());
    ASSERT_EQ(std::to_string(logs.size()), phases);
    for (const auto& [phase, model] : models) {
      ASSERT_EQ(model.size(), 512u);
      Model seen = found(logs[phase - 1]);
      for (const auto& [path, did] : model) {
        for (size_t i = 0; i < did.size(); ++i) {
          if (did[i] == -1) continue;  // not known
          ASSERT_EQ(seen[path][i], did[i])
              << "seed " << seed << ", phase " << phase << ", path " << path << ", " << kKeys[i];
        }
      }
    }
  }
};

TEST_F(ModelTest, OneThread) {
  for (const char* seed : {"1", "2", "3"}) expect_model(seed, "1", "300000", "1");
}

TEST_F(ModelTest, SeveralThreads) {
  for (const char* seed : {"4", "5"}) expect_model(seed, "4", "60000", "4");
}

}  // namespace
}  // namespace mtrace::test
