// Servers under load: redis (jemalloc below) and nginx (master and workers, in the foreground and
// as a daemon that closes its descriptors), with reports taken while they work. They listen on
// sockets in the test's own directory.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host_test.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

class ServerTest : public HostTest {};

// With an option beside the ordinary ones; redis uses all that is usable of a block, and jemalloc
// maps memory by symbol.
class RedisTest : public ServerTest, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(With, RedisTest, ::testing::Values("DEPTH=10", "MMAP=1", "FILL=0xa5"),
                         named_after);

TEST_P(RedisTest, UnderLoad) {
  const std::string socket = temp() + "/redis";
  const std::string option = GetParam();
  Process server(traced(redis_server(temp()), setting("MTRACE_" + option)));
  wait_for_server(socket);
  const auto client = [&](const Words& arguments) { return redis(temp(), arguments); };
  server.send(SIGUSR1);
  wait_for_report("redis-server", server.pid(), 1);
  for (int round = 0; round < 2; ++round) {
    Process load(plain({"/usr/bin/redis-benchmark", "-s", socket, "-q", "-n", "4000", "-r", "1000",
                        "-d", "200", "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd"}));
    server.send(SIGUSR1);  // under load
    wait_for_report("redis-server", server.pid(), 2 + 2 * round);
    expect_exit(load.wait());
    server.send(SIGUSR1);
    wait_for_report("redis-server", server.pid(), 3 + 2 * round);
  }
  EXPECT_EQ(client({"set", "answer", "42"}), "OK\n");
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += std::string(1 + i % 5, static_cast<char>('a' + i % 26));
    client({"append", "text", std::string(1 + i % 5, static_cast<char>('a' + i % 26))});
  }
  EXPECT_EQ(client({"get", "text"}), text + "\n");
  EXPECT_EQ(client({"get", "answer"}), "42\n");
  EXPECT_EQ(client({"eval", "local t = {} for i = 1, 1000 do t[i] = i * i end return #t", "0"}),
            "1000\n");
  // A child that writes the data to a file, by fork.
  EXPECT_HAS(client({"bgsave"}), "started");
  wait_until("the end of bgsave", [&] {
    return client({"info", "persistence"}).find("rdb_bgsave_in_progress:0") != std::string::npos;
  });
  EXPECT_HAS(client({"info", "persistence"}), "rdb_last_bgsave_status:ok");
  EXPECT_EQ(client({"flushall"}), "OK\n");
  server.send(SIGUSR1);
  wait_for_report("redis-server", server.pid(), 6);
  client({"shutdown", "nosave"});
  const Result result = expect_exit(server.wait());
  const std::vector<Memlog> logs = logs_of(result.pid, 7);
  EXPECT_HAS(logs[0].get("library"), "allocator=libjemalloc.so.2");
  // The load leaves data behind, and flushall gives it back.
  EXPECT_GT(logs[1].amount("delta").blocks + logs[2].amount("delta").blocks, 1000);
  EXPECT_LT(logs[5].amount("delta").blocks, -1000);
  int children = 0;
  for (const auto& [name, child] : all_logs()) {
    if (child[0].number("pid") == result.pid) continue;
    ++children;
    EXPECT_EQ(child[0].number("parent"), result.pid) << name;
    EXPECT_GT(child[0].amount("inherited").blocks, 1000) << name;
  }
  EXPECT_EQ(children, 1) << "the child of bgsave";
  EXPECT_EQ(logs.back().has("kind"), option == "MMAP=1") << "what jemalloc maps";
}

class NginxTest : public ServerTest {
 protected:
  void configure(bool daemon) { write_nginx_files(temp(), daemon); }
  Command nginx() const {
    Command command = traced({"/usr/sbin/nginx", "-p", temp(), "-e", temp() + "/logs/start.log",
                              "-c", temp() + "/nginx.conf"});
    // Its own handlers take SIGUSR1 and SIGUSR2.
    command.env["MTRACE_SIGNAL"] = "RTMIN+1";
    return command;
  }
  void load(int rounds) { load_nginx(temp(), rounds); }
  // Load and reports of a running server, up to the request to stop.
  void exercise(pid_t master) {
    wait_until("two workers", [&] { return children_of(master).size() == 2; });
    workers_ = children_of(master);
    load(40);
    report(master, 1);
    load(40);
    // Its own use of the signals goes on: reopen the logs.
    fs::remove(temp() + "/logs/access.log");
    kill(master, SIGUSR1);
    wait_until("a new access log", [&] { return fs::exists(temp() + "/logs/access.log"); });
    report(master, 2);
    load(10);
    kill(master, SIGQUIT);
  }
  void report(pid_t master, int seq) {
    std::vector<pid_t> all = workers_;
    all.push_back(master);
    for (const pid_t pid : all) kill(pid, SIGRTMIN + 1);
    for (const pid_t pid : all) wait_for_report("nginx", pid, seq);
  }
  void check_processes(pid_t master) {
    const auto all = all_logs();
    for (const pid_t pid : workers_) {
      const std::vector<Memlog> logs = logs_of(pid, 3);
      EXPECT_EQ(logs[0].number("parent"), master);
      EXPECT_EQ(logs[2].get("trigger"), "exit");
      EXPECT_GT(logs[0].amount("inherited").blocks, 0);
    }
    ASSERT_EQ(logs_of(master).size(), 3u);
  }
  std::vector<pid_t> workers_;
};

TEST_F(NginxTest, Foreground) {
  configure(false);
  Process server(nginx());
  wait_for_server(temp() + "/nginx");
  exercise(server.pid());
  const Result result = expect_exit(server.wait());
  EXPECT_EQ(result.out + result.err, "");
  check_processes(server.pid());
  EXPECT_EQ(all_logs().size(), 3u);
}

TEST_F(NginxTest, Daemon) {
  // Orphans come to this process, so that the end of the daemon is seen.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  configure(true);
  const Result start = expect_exit(run(nginx()));
  wait_for_server(temp() + "/nginx");
  const pid_t master = std::stoi(read_file(temp() + "/nginx.pid"));
  exercise(master);
  int status = -1;
  EXPECT_EQ(waitpid(master, &status, 0), master);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
  check_processes(master);
  // And the process that was started, which left its child behind.
  EXPECT_EQ(logs_of(start.pid).size(), 1u);
  EXPECT_EQ(logs_of(master)[0].number("parent"), start.pid);
}

}  // namespace
}  // namespace mtrace::test
