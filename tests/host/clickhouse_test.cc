// memlog export -f clickhouse, into Debian's clickhouse-server on loopback.
#include <memory>

#include "host_test.h"
#include "http_client.h"

namespace mtrace::test {
namespace {

constexpr char kServer[] = "/usr/sbin/clickhouse-server";
constexpr int kEntries = 40;  // of each report

// Stacks of two functions; the build shifts the offsets.
std::string text_of(const std::string& host, int seq, int build) {
  std::string entries;
  for (int i = kEntries; i > 0; --i) {
    const std::string bytes = std::to_string(10 * i);
    entries += "+" + bytes + "\tblocks=+1\tlive=" + bytes + "\tstack=0000000000000" +
               std::to_string(100 * build + 100 + i) + "\n\tf" + std::to_string(i) +
               "(int)\ta.c:1\t(/usr/bin/app+0x" + std::to_string(1000 + 100 * build + i) +
               ")\n\tmain\ta.c:2\t(/usr/bin/app+0x" + std::to_string(5000 + build) + ")\n";
  }
  const std::string sum = std::to_string(5 * kEntries * (kEntries + 1));
  const std::string blocks = " bytes +" + std::to_string(kEntries) + " blocks\n";
  return "# memlog 2\n# program: /usr/bin/app\n# command: app\n# pid: 7\n# seq: " +
         std::to_string(seq) + "\n# trigger: request\n# started: 2026-11-20T10:00:00.00000" +
         std::to_string(build) + "Z\n# taken: 2026-11-20T11:00:00.000000Z\n# delta: +" + sum +
         blocks + "# live: " + sum + " bytes " + std::to_string(kEntries) +
         " blocks\n# lost: frames=0 stacks=0 blocks=0 inflight=0\n" + entries +
         "# module: /usr/bin/app build-id=ab0" + std::to_string(build) +
         " base=0x1000\n# host: " + host +
         " boot-id=6a0e8a3e-0000-4000-8000-000000000000 arch=x86_64\n# resolved: yes\n" + "# end\n";
}

class ClickHouseTest : public HostTest {
 protected:
  void SetUp() override {
    fs::create_directories(temp() + "/data");
    fs::create_directories(temp() + "/reports");
    port_ = free_port();
    write_file(temp() + "/users.xml",
               "<yandex><profiles><default></default></profiles><users><default><password>"
               "</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>"
               "<quota>default</quota></default></users><quotas><default></default></quotas>"
               "</yandex>");
    write_file(temp() + "/config.xml",
               "<yandex><logger><level>none</level></logger><listen_host>127.0.0.1</listen_host>"
               "<http_port>" +
                   std::to_string(port_) + "</http_port><path>" + temp() +
                   "/data/</path><tmp_path>" + temp() + "/data/tmp/</tmp_path><users_config>" +
                   temp() +
                   "/users.xml</users_config><default_profile>default</default_profile>"
                   "<default_database>default</default_database><mark_cache_size>1048576"
                   "</mark_cache_size></yandex>");
    start();
  }
  void start() {
    server_ =
        std::make_unique<Process>(plain({kServer, "--config-file=" + temp() + "/config.xml"}));
    wait_until("clickhouse-server", [&] {
      try {
        return http(port_, "GET", "/ping").status == 200;
      } catch (const std::exception&) {
        return false;  // it does not listen yet
      }
    });
  }
  void kill_server() {
    server_->send(SIGKILL);
    server_->wait();
  }
  std::string ask(const std::string& statement, const std::string& rows = "") const {
    std::string target = "/?query=";
    for (const char c : statement) target += c == ' ' ? std::string("%20") : std::string(1, c);
    HttpConnection connection(port_);
    connection.send("POST " + target + " HTTP/1.0\r\nHost: localhost\r\nContent-Length: " +
                    std::to_string(rows.size()) + "\r\n\r\n" + rows);
    return parse_answer(connection.read_all()).body;
  }
  void write_reports(const std::string& host, int first, int last, int build) const {
    for (int seq = first; seq <= last; ++seq) {
      write_file(temp() + "/reports/" + host + "-" + std::to_string(seq) + ".memlog",
                 text_of(host, seq, build));
    }
  }
  Words load_words() const {
    const std::string server = "clickhouse://127.0.0.1:" + std::to_string(port_);
    return {"export", "-f", "clickhouse", "--to", server, temp() + "/reports"};
  }
  Result load() const { return memlog(load_words()); }

 private:
  std::unique_ptr<Process> server_;
  int port_ = 0;
};

TEST_F(ClickHouseTest, KillsLoseNothingAndDoubleNothing) {
  write_reports("web1", 1, 5, 1);
  EXPECT_EQ(expect_exit(load()).out, "5 reports inserted, 200 rows; 0 there already\n");
  kill_server();
  start();
  write_reports("web1", 6, 10, 1);
  // What a sender that was killed leaves: the server inserts the rows that have arrived.
  const Result rows =
      expect_exit(memlog({"export", "-f", "clickhouse", temp() + "/reports/web1-6.memlog"}));
  std::string part;
  for (int line = 0; line < 13; ++line) part += lines_of(rows.out).at(line) + '\n';
  ask("INSERT INTO fleet FORMAT JSONEachRow", part);
  EXPECT_EQ(ask("SELECT count() FROM fleet"), "213\n");
  {
    Process killed(tool(load_words()));
    killed.send(SIGKILL);
    killed.wait();
  }
  expect_exit(load());
  EXPECT_EQ(ask("SELECT count(), sum(bytes), uniq(seq), max(entries) FROM fleet"),
            "400\t82000\t10\t40\n");
  EXPECT_EQ(load().out, "0 reports inserted, 0 rows; 10 there already\n");
  EXPECT_EQ(ask("SELECT count() FROM fleet"), "400\n");
}

// The same functions in two builds: other stacks, one fn.
TEST_F(ClickHouseTest, BuildsAreJoinedByTheFunctions) {
  write_reports("web1", 1, 2, 1);
  write_reports("web2", 1, 2, 2);
  expect_exit(load());
  EXPECT_EQ(ask("SELECT uniq(stack), uniq(fn), uniq(build_id), uniq(host) FROM fleet"),
            "80\t40\t2\t2\n");
  EXPECT_EQ(ask("SELECT uniq(stack), any(depth) FROM stacks"), "80\t2\n");
}

// Reports whose entries cannot be read any more are not missed: by the lines around the entries of
// any file, and by the name of one that a receiver has named.
TEST_F(ClickHouseTest, ReportsThatAreThereAreNotRead) {
  write_reports("web1", 1, 3, 1);
  expect_exit(load());
  const std::string received = temp() + "/store/web1";
  fs::create_directories(received);
  for (const int seq : {1, 2, 3}) {
    const std::string file = temp() + "/reports/web1-" + std::to_string(seq) + ".memlog";
    std::string text = read_file(file);
    text.replace(text.find("+10\tblocks"), 3, "ten");
    write_file(file, text);
    write_file(temp() + "/cut", text.substr(0, text.size() / 2));
    const Result packed = run(plain({"/usr/bin/zstd", "-cq", temp() + "/cut"}));
    write_file(
        received + "/app-7-20261120T100000.000001Z-6a0e8a3e-" + std::to_string(seq) + ".memlog.zst",
        packed.out);
  }
  EXPECT_EQ(load().out, "0 reports inserted, 0 rows; 3 there already\n");
  Words words = load_words();
  words.back() = received;
  EXPECT_EQ(memlog(words).out, "0 reports inserted, 0 rows; 3 there already\n");
  // A name that lies about its report is not believed.
  fs::rename(received + "/app-7-20261120T100000.000001Z-6a0e8a3e-3.memlog.zst",
             received + "/app-7-20261120T100000.000001Z-6a0e8a3e-4.memlog.zst");
  const Result lies = memlog(words);
  EXPECT_HAS(lies.err, "-4.memlog.zst:");
  EXPECT_FALSE(lies.exited(0));
}

TEST_F(ClickHouseTest, AServerThatRefusesIsNamed) {
  write_reports("web1", 1, 1, 1);
  Words words = load_words();
  words[4] += "/nosuch";
  EXPECT_HAS(expect_exit(memlog(words), 1).err, "Database nosuch doesn't exist");
}

}  // namespace
}  // namespace mtrace::test
