// --json of the commands that look at processes, on a program whose blocks are known.
#include <nlohmann/json.hpp>
#include <string>

#include "host_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class JsonAnswers : public HostTest {
 protected:
  json answer(std::vector<std::string> words, int status = 0) const {
    words.insert(words.begin(), memlog_tool());
    words.emplace_back("--json");
    const Result result = run(plain(words));
    EXPECT_TRUE(result.exited(status)) << result.how() << result.err;
    return json::parse(result.out);
  }
};

TEST_F(JsonAnswers, TopAndStatusOfAProcess) {
  Command command = traced({program("live_target"), ""});
  command.env["MTRACE_LEDGER"] = temp();
  Process process(command);
  process.read_until("go");
  process.write("1000\n");
  process.read_until("done");
  process.write("500\n");
  process.read_until("done");
  const std::string pid = std::to_string(process.pid());

  const json top = answer({"top", "--once", pid});
  EXPECT_EQ(top["view"], "top");
  EXPECT_EQ(top["pid"], process.pid());
  bool found = false;
  for (const json& stack : top["stacks"]) {
    if (stack["frames"][0].value("function", "") != "site_kept") continue;
    found = true;
    EXPECT_EQ(stack["bytes"], 1500);
    EXPECT_EQ(stack["blocks"], 2);
    EXPECT_EQ(stack["peak_bytes"], 1500);
    EXPECT_EQ(stack["stack"].get<std::string>().size(), 16u);
    EXPECT_EQ(stack["frames"][0]["module"], program("live_target"));
    EXPECT_TRUE(stack["frames"][0]["line"].is_number_unsigned()) << stack;
  }
  EXPECT_TRUE(found) << top;
  EXPECT_EQ(answer({"top", "--once", "--limit", "1", pid})["stacks"].size(), 1u);

  const json status = answer({"status", pid});
  ASSERT_EQ(status["processes"].size(), 1u);
  const json& one = status["processes"][0];
  EXPECT_EQ(one["pid"], process.pid());
  EXPECT_EQ(one["name"], "live_target");
  EXPECT_EQ(one["state"], "active");
  EXPECT_EQ(one["signal"], "USR1");
  EXPECT_EQ(one["signal_state"], "blocked");
  EXPECT_EQ(one["ledger"], temp() + "/live_target-" + pid + ".ledger");
  EXPECT_EQ(one["directory"], out());

  EXPECT_EQ(answer({"status", "no-such-process-here"}, 1)["processes"], json::array());
  expect_exit(process.wait());
}

// The sizes of the blocks that the program keeps, from its ledger: 900 and 1000 in one class.
TEST_F(JsonAnswers, SizesOfLiveBlocks) {
  Command command = traced({program("live_target"), ""});
  command.env["MTRACE_LEDGER"] = temp();
  Process process(command);
  process.read_until("go");
  for (const char* bytes : {"1000", "900", "5000"}) {
    process.write(std::string(bytes) + "\n");
    process.read_until("done");
  }
  const std::string pid = std::to_string(process.pid());
  const json sizes = answer({"show", "--sizes", pid});
  EXPECT_EQ(sizes["pid"], process.pid());
  uint64_t bytes = 0;
  json kept;
  for (const json& stack : sizes["stacks"]) {
    bytes += stack["bytes"].get<uint64_t>();
    if (stack["frames"][0].value("function", "") == "site_kept") kept = stack;
  }
  EXPECT_EQ(sizes["bytes"], bytes);
  ASSERT_FALSE(kept.is_null()) << sizes;
  EXPECT_EQ(kept["bytes"], 6900);
  EXPECT_EQ(kept["blocks"], 3);
  EXPECT_EQ(kept["average_bytes"], 2300);
  EXPECT_EQ(kept["sizes"], json::parse(R"([
    {"least_bytes": 512, "most_bytes": 1023, "blocks": 2, "bytes": 1900},
    {"least_bytes": 4096, "most_bytes": 8191, "blocks": 1, "bytes": 5000}])"));
  const Result text =
      expect_exit(run(plain({memlog_tool(), "show", "--sizes", "--by", "size", pid})));
  EXPECT_HAS(text.out, "6900 bytes in 3 blocks of 2300 bytes on average");
  EXPECT_HAS(text.out, "              512..1023             2            1900  ##\n");
  expect_exit(process.wait());
}

}  // namespace
}  // namespace mtrace::test
