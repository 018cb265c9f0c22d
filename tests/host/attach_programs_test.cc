// Programs of every kind under load, attached to and detached from again and again: their answers
// are those that they give by themselves.
#include <atomic>
#include <functional>

#include "host_test.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

class AttachProgramsTest : public HostTest {
 protected:
  static int rounds() { return 4 * longer(); }

  Result memlog(Words arguments, pid_t pid) const {
    arguments.push_back(std::to_string(pid));
    return HostTest::memlog(std::move(arguments));
  }
  void expect_good(const Result& result) const { expect_exit(result); }

  // Attaches and detaches while `load` runs over and over in another thread. Every so often a
  // report says that something was counted.
  void exercise(pid_t pid, const std::function<void()>& load, const Words& options = {}) {
    Load loading(load);
    const Words attach = joined({"attach"}, options);
    for (int round = 0; round < rounds() && !HasFailure(); ++round) {
      expect_good(memlog(attach, pid));
      loading.wait_for(2);
      if (round % 50 == 0) expect_good(memlog({"report"}, pid));
      expect_good(memlog({"detach"}, pid));
    }
    loading.end();
    load();
  }

  // By the log of write_nginx_files().
  size_t answers_of(pid_t worker) const {
    const Words lines = lines_of(read_file(temp() + "/logs/access.log"));
    return std::count(lines.begin(), lines.end(), std::to_string(worker));
  }

  // The report of the first round.
  void expect_counted(const std::string& name, pid_t pid, const std::string& allocator) {
    const std::vector<Memlog> logs = logs_of(pid);
    ASSERT_GE(logs.size(), 1u) << name;
    EXPECT_GT(logs[0].amount("allocated").blocks, 10) << name;
    EXPECT_HAS(logs[0].get("library"), "allocator=" + allocator);
  }
};

TEST_F(AttachProgramsTest, Redis) {
  Process server(plain(redis_server(temp())));
  wait_for_server(temp() + "/redis");
  std::atomic<int> number = 0;
  exercise(server.pid(), [&] { load_redis(temp(), number++); });
  expect_counted("redis-server", server.pid(), "libjemalloc.so.2");
  redis(temp(), {"shutdown", "nosave"});
  expect_exit(server.wait());
}

TEST_F(AttachProgramsTest, NginxWorkers) {
  write_nginx_files(temp(), false);
  Process server(plain({"/usr/sbin/nginx", "-p", temp(), "-e", temp() + "/logs/start.log", "-c",
                        temp() + "/nginx.conf"}));
  wait_for_server(temp() + "/nginx");
  wait_until("two workers", [&] { return children_of(server.pid()).size() == 2; });
  const std::vector<pid_t> workers = children_of(server.pid());
  for (const pid_t worker : workers) {
    // Its own handlers take SIGUSR1: the report is asked for without a signal.
    // The other worker may be the one that answers: again until this one has.
    exercise(worker, [&] {
      const size_t enough = answers_of(worker) + 5;
      for (int i = 0; i < 100 && answers_of(worker) < enough; ++i) load_nginx(temp(), 5);
    });
    expect_counted("nginx", worker, "libc.so.6");
  }
  kill(server.pid(), SIGQUIT);
  const Result result = expect_exit(server.wait());
  EXPECT_EQ(result.out + result.err, "");
}

TEST_F(AttachProgramsTest, Node) {
  const std::string socket = temp() + "/node";
  write_file(temp() + "/server.js", R"TEXT(
const http = require('http'), zlib = require('zlib');
const server = http.createServer((request, response) => {
  zlib.deflate(Buffer.alloc(10000, request.url), (error, data) => {
    response.end(request.url + ' ' + (error ? 'bad' : zlib.inflateSync(data).length));
  });
}).listen(process.argv[2]);
process.stdin.on('data', () => {}).on('end', () => server.close(() => process.exit(5)));
)TEXT");
  Process server(plain({"/usr/bin/node", temp() + "/server.js", socket}));
  wait_for_server(socket);
  std::atomic<int> number = 0;
  exercise(server.pid(),
           [&] {
             const std::string target = "/item" + std::to_string(number++);
             EXPECT_TRUE(get(socket, target).ends_with(target + " 10000"));
           },
           {"--signal", "USR2"});
  expect_counted("node", server.pid(), "libc.so.6");
  EXPECT_EQ(expect_exit(server.wait(), 5).err, "");
}

TEST_F(AttachProgramsTest, PythonThreads) {
  const std::string socket = temp() + "/python";
  write_file(temp() + "/server.py", std::string(kPythonServer) + "sys.exit(6)\n");
  Process server(plain({"/usr/bin/python3", temp() + "/server.py", socket}));
  wait_for_server(socket);
  const std::string first = get(socket, "/answer");
  ASSERT_NE(first.find("/answer "), std::string::npos) << first;
  const std::string body = first.substr(first.rfind("/answer "));
  exercise(server.pid(), [&] { EXPECT_TRUE(get(socket, "/answer").ends_with(body)); });
  expect_counted("python3", server.pid(), "libc.so.6");
  EXPECT_EQ(expect_exit(server.wait(), 6).err, "");
}

// A program in Rust. It searches without allocating, and gives back at its end what it had.
TEST_F(AttachProgramsTest, Ripgrep) {
  Process process(plain({"/usr/bin/rg", "--line-buffered", "--no-config", "needle[0-9]+", "-"}));
  int number = 0;
  const auto search = [&] {
    const std::string line = "a needle" + std::to_string(number++) + " in it";
    process.write("hay\n" + line + "\n" + std::string(70'000, 'h') + "\n");
    process.read_until(line);
  };
  search();
  exercise(process.pid(), search);
  expect_good(memlog({"attach"}, process.pid()));
  expect_exit(process.wait());
  EXPECT_GT(all_logs().at("rg-" + process.id() + ".2").at(0).number("unknown-frees"), 100);
}

}  // namespace
}  // namespace mtrace::test
