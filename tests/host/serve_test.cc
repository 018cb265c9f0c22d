// memlog serve on loopback, over programs whose blocks are known.
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "host_test.h"
#include "http_client.h"
#include "local_server.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

class ServeTest : public HostTest {
 protected:
  // A traced process that holds 1500 bytes in two blocks and waits.
  std::unique_ptr<Process> target() const {
    auto process = target_of_1000_bytes("");
    keep(*process, 500);
    return process;
  }
  // The same with one block of 1000 bytes. `how`: "busy": allocates and frees all the time.
  std::unique_ptr<Process> target_of_1000_bytes(const char* how) const {
    auto process = std::make_unique<Process>(
        traced({program("live_target"), how}, {{"MTRACE_LEDGER", temp()}}));
    process->read_until("go");
    keep(*process, 1000);
    return process;
  }
  static void keep(Process& process, int bytes) {
    process.say(std::to_string(bytes) + "\n", "done");
  }
  // Keeps one block after another until it goes out of scope.
  class Keeping {
   public:
    Keeping(Process& process, int bytes)
        : thread_([this, &process, bytes] {
            while (!over_) {
              keep(process, bytes);
              std::this_thread::sleep_for(std::chrono::milliseconds(1));  // leaves the others time
            }
          }) {}
    ~Keeping() {
      over_ = true;
      thread_.join();
    }

   private:
    std::atomic<bool> over_ = false;
    std::thread thread_;
  };
  // What memlog run would have recorded of the first milliseconds of a served process.
  void record_timeline(const Process& process) const {
    const json none = get_json(api(process, "/timeline"));
    EXPECT_EQ(none["samples"], json::array());
    const std::string pid = process.id();
    const std::string path = out() + "/live_target-" + pid + ".timeline";
    write_private(path, "# timeline 1\n# program: live_target\n# pid: " + pid +
                            "\n# started: " + none["started"].get<std::string>() +
                            "\n# interval: 1 ms\n"
                            "# columns: milliseconds live blocks resident allocations\n"
                            "1\t100\t1\t4096\t1\n2\t200\t2\t8192\t1\n# end\n");
    EXPECT_EQ(get_json(api(process, "/timeline"))["samples"].size(), 2u);
  }
  // Starts a server with these words; port() is then its port.
  void serve(Words words, const std::string& listen = "127.0.0.1:0") {
    server_ = std::make_unique<Process>(
        plain(joined({memlog_tool(), "serve", "--listen", listen}, words)));
    told_ = server_->read_line().value_or("");
    if (listen.starts_with("127.")) port_ = std::stoi(told_.substr(told_.rfind(':') + 1));
  }
  // A program whose events and mappings are known, with an event log and reports that tell regions.
  void run_schedule() const {
    expect_exit(
        run(plain({memlog_tool(), "run", "--events", "-o", out(), "--", program("event_schedule")},
                  {{"MTRACE_MMAP", "1"}})));
  }
  void serve(const Process& process) { serve({process.id()}); }
  // target(), served with these words besides.
  std::unique_ptr<Process> served(Words words = {}) {
    auto process = target();
    words.push_back(process->id());
    serve(words);
    return process;
  }
  // Leaves the server running while another is started.
  std::unique_ptr<Process> keep_server() { return std::move(server_); }
  Result end() {
    server_->send(SIGTERM);
    return server_->wait();
  }
  HttpAnswer get(const std::string& path, std::map<std::string, std::string> headers = {}) const {
    return http(port_, "GET", path, std::move(headers));
  }
  HttpAnswer post(const std::string& path, std::map<std::string, std::string> headers = {}) const {
    return http(port_, "POST", path, std::move(headers));
  }
  json get_json(const std::string& path, int status = 200) const {
    const HttpAnswer answer = get(path);
    EXPECT_EQ(answer.status, status) << path << answer.body;
    EXPECT_EQ(answer.headers.at("content-type"), "application/json") << path;
    return json::parse(answer.body);
  }
  json tool_json(Words words) const {
    return json::parse(expect_exit(run(plain(joined({memlog_tool()}, words)))).out);
  }
  int port() const { return port_; }
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::map<std::string, std::string> from_here() const { return {{"Origin", address()}}; }
  // A file that only its owner reads, and what it holds.
  std::string write_token() const {
    write_private(temp() + "/token", "0123456789abcdef0123\n");
    return "0123456789abcdef0123";
  }
  // A script of this folder, which drives Chromium.
  Command script(const std::string& name, Words arguments) const {
    const std::string modules = build_dir() + "/npm/node_modules";
    EXPECT_TRUE(fs::exists(modules + "/playwright-core")) << "make deps-test gets it";
    EXPECT_TRUE(fs::exists("/usr/bin/chromium")) << "make deps-test installs it";
    return plain(joined({"/usr/bin/env", "node", source_dir() + "/tests/host/" + name}, arguments),
                 {{"NODE_PATH", modules}});
  }
  const std::string& told() const { return told_; }
  std::string unzipped(const std::string& data) const {
    write_file(temp() + "/data.gz", data);
    return expect_exit(run(plain({"/bin/gzip", "-dc", temp() + "/data.gz"}))).out;
  }
  // Why there is no answer.
  std::string error(const std::string& path, int status) const {
    return get_json(path, status)["error"];
  }
  // The status of the answer to an address of this machine.
  int status_for(const std::string& path, const char* from) const {
    HttpConnection one(port_, from);
    one.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return parse_answer(one.read_all()).status;
  }
  // What /metrics has of the bytes of site_kept.
  std::string kept_in(const std::string& metrics, const std::string& pid) const {
    return sample(metrics, "mtrace_function_live_bytes{pid=\"" + pid +
                               "\",name=\"live_target\",function=\"site_kept\"}");
  }
  // The value of a sample line that begins with `series`.
  static std::string sample(const std::string& text, const std::string& series) {
    for (const std::string& line : lines_of(text)) {
      if (line.starts_with(series + " ")) return line.substr(series.size() + 1);
    }
    return "none: " + text;
  }
  static std::string api(const Process& process, const std::string& rest = "") {
    return "/api/processes/" + process.id() + rest;
  }

 private:
  std::unique_ptr<Process> server_;
  std::string told_;
  int port_ = 0;
};

TEST_F(ServeTest, MetricsAreThoseOfTop) {
  const auto process = served();
  const std::string pid = process->id();
  const json top = tool_json({"top", "--once", "--json", pid});
  const HttpAnswer answer =
      get("/metrics", {{"Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.headers.at("content-type"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_TRUE(answer.body.ends_with("\n# EOF\n"));
  const std::string labels = "{pid=\"" + pid + "\",name=\"live_target\"}";
  const auto value = [&](const std::string& name) { return sample(answer.body, name + labels); };
  EXPECT_EQ(value("mtrace_live_bytes"), top["bytes"].dump());
  EXPECT_EQ(value("mtrace_live_blocks"), top["blocks"].dump());
  EXPECT_EQ(value("mtrace_peak_bytes"), top["peak_bytes"].dump());
  EXPECT_EQ(value("mtrace_lost_blocks_total"), "0");
  EXPECT_EQ(value("mtrace_ledger_unread"), "0");
  EXPECT_EQ(std::stoll(value("mtrace_allocations_total")) - std::stoll(value("mtrace_frees_total")),
            top["blocks"].get<int64_t>());
  EXPECT_EQ(kept_in(answer.body, pid), "1500");
  keep(*process, 700);
  EXPECT_EQ(kept_in(get("/metrics").body, pid), "2200");
  expect_exit(end());
}

// No function of its own: all is "other", and the sum stays.
TEST_F(ServeTest, FunctionsInMetricsAreBounded) {
  const auto process = served({"--top", "0"});
  const std::string text = get("/metrics").body;
  const std::string labels = "{pid=\"" + process->id() + "\",name=\"live_target\"";
  EXPECT_EQ(sample(text, "mtrace_function_live_bytes" + labels + ",function=\"other\"}"),
            sample(text, "mtrace_live_bytes" + labels + "}"));
  EXPECT_LACKS(text, "site_kept");
}

// Each path of the description answers, and each key of its answer is described.
TEST_F(ServeTest, OpenApiDescribesTheAnswers) {
  const auto process = target();
  const std::string pid = process->id();
  expect_exit(memlog({"report", pid}));
  run_schedule();
  serve({"--allow-actions", pid, out()});
  const json description = get_json("/api/openapi.json");
  const std::string memlog = get_json("/api/memlogs")["memlogs"][0]["name"];
  int answered = 0;
  for (const auto& [pattern, methods] : description["paths"].items()) {
    for (const auto& [method, one] : methods.items()) {
      std::string path = pattern;
      for (const auto& [name, value] :
           std::map<std::string, std::string>{{"{pid}", pid},
                                              {"{number}", "1"},
                                              {"{format}", "folded"},
                                              {"{host}/{name}", memlog}}) {
        const size_t at = path.find(name);
        if (at != std::string::npos) path.replace(at, name.size(), value);
      }
      if (pattern == "/api/diff") path += "?a=reports/1&b=reports/1";
      const auto& content = one["responses"]["200"]["content"];
      const std::string type = content.begin().key();
      // They end later; see the test of events. And what attaches needs another process.
      if (type == "text/event-stream" || method != "get") continue;
      const HttpAnswer answer = get(path);
      EXPECT_EQ(answer.status, 200) << path << answer.body;
      ++answered;
      if (type != "application/json" || answer.status != 200) continue;
      const json& keys = content[type]["schema"]["properties"];
      const json object = json::parse(answer.body);
      for (const auto& [key, value] : object.items()) {
        EXPECT_TRUE(keys.contains(key)) << path << " has " << key;
      }
    }
  }
  EXPECT_GT(answered, 15);
}

TEST_F(ServeTest, ViewsAreThoseOfTheCommands) {
  const auto process = target();
  expect_exit(memlog({"report", process->id()}));
  serve({process->id(), out()});
  const std::string report = report_path("live_target", process->pid(), 1);
  EXPECT_EQ(get_json("/api/reports/1/stacks?by=bytes"),
            tool_json({"show", "--json", "--sum", "--by", "bytes", out()}));
  EXPECT_EQ(get("/api/reports/1/export/folded").body,
            memlog({"export", "-f", "folded", report}).out);
  // What is live is all since the start, although a report was written.
  const json stacks = get_json(api(*process, "/stacks?include=site_kept")).at("reports").at(0);
  ASSERT_EQ(stacks["stacks"].size(), 1u) << stacks;
  EXPECT_EQ(stacks["stacks"][0]["bytes"], 1500);
  EXPECT_TRUE(stacks.contains("left_out")) << stacks;
  keep(*process, 300);
  const json functions = get_json(api(*process, "/functions"));
  bool found = false;
  bool runtimes = false;
  for (const json& one : functions["functions"]) {
    runtimes |= one["function"] == "kept by runtimes";
    if (one["function"] != "site_kept") continue;
    found = true;
    EXPECT_EQ(one["bytes"], 1800);
    EXPECT_EQ(one["blocks"], 3);
  }
  EXPECT_TRUE(found && runtimes) << functions;
}

// All numbers are in event_schedule.c: 32 blocks of 10 to 41 bytes, 16 of them freed by another
// thread for zeroed ones, all of them moved to 2000 to 2031 bytes.
TEST_F(ServeTest, EventsOfALogWithFilters) {
  run_schedule();
  const std::string none = temp() + "/none";
  fs::create_directory(none);
  serve({out(), none});
  const json logs = get_json("/api/reports/1/logs")["logs"];
  ASSERT_EQ(logs.size(), 1u) << logs;
  const std::string log = logs[0];
  EXPECT_TRUE(is_match(log, "event_schedule-[0-9]+\\.events")) << log;
  const auto events = [&](const std::string& query) {
    const HttpAnswer answer = get("/api/reports/1/events?" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.headers.at("content-type"), "application/x-ndjson");
    std::vector<json> all;
    for (const std::string& line : lines_of(answer.body)) all.push_back(json::parse(line));
    return all;
  };
  const auto named = [&](const std::string& query, const char* name) {
    const auto all = events(query);
    return std::count_if(all.begin(), all.end(),
                         [&](const json& event) { return event["event"] == name; });
  };
  EXPECT_EQ(named("size=10..41", "malloc"), 32);
  EXPECT_EQ(named("size=10..41", "calloc"), 0);
  EXPECT_EQ(named("size=300..345", "calloc"), 16);
  EXPECT_EQ(named("size=2000..2031", "realloc"), 32);
  EXPECT_EQ(named("size=2000..2031&log=" + log, "realloc"), 32);
  EXPECT_EQ(named("size=10..41&leaked=1", "malloc"), 0);
  EXPECT_EQ(named("size=2000..2031&leaked=1&include=main", "realloc"), 32);
  const auto last = events("last=3&size=10..41");
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[2]["size"], 41) << last[2];
  const std::string path = "/api/reports/";
  EXPECT_EQ(error(path + "1/events?log=other.events", 404), "no such log: .../logs lists them");
  EXPECT_HAS(error(path + "1/events?size=many", 400), "--size");
  EXPECT_HAS(error(path + "1/events?last=0", 400), "from 1 to 100000");
  EXPECT_HAS(error(path + "1/events?sysroot=/", 400), "no parameter sysroot");
  EXPECT_EQ(error(path + "2/events", 404), "no event log: memlog run --events writes one");
  fs::copy_file(out() + "/" + log, out() + "/copy.events");
  EXPECT_EQ(error(path + "1/events", 400), "log: there are several; .../logs lists them");
}

TEST_F(ServeTest, RegionsAreThoseOfTheMap) {
  const auto process = target();
  run_schedule();
  serve({process->id(), out()});
  const json map = get_json(api(*process, "/regions?limit=0"));
  const json own = tool_json({"map", "--json", "--limit=0", process->id()});
  for (const char* key : {"pid", "name", "live_bytes", "live_blocks", "regions_count"}) {
    EXPECT_EQ(map[key], own[key]) << key;
  }
  EXPECT_EQ(map["regions"].size(), map["regions_count"]);
  EXPECT_EQ(get_json(api(*process, "/regions?limit=2"))["regions"].size(), 2u);
  EXPECT_HAS(error("/api/processes/1/regions", 404), "process 1 is not served:");
}

// The list of processes has the totals that the library keeps, the rest has the sums of the stacks.
TEST_F(ServeTest, TotalsAreThoseOfTop) {
  const auto process = target();
  serve({});
  const json top = tool_json({"top", "--once", "--json", process->id()});
  const json processes = get_json("/api/processes")["processes"];
  const auto one = std::find_if(processes.begin(), processes.end(), [&](const json& candidate) {
    return candidate["pid"] == process->pid();
  });
  ASSERT_NE(one, processes.end()) << "without operands all processes are served: " << processes;
  EXPECT_EQ((*one)["name"], "live_target");
  EXPECT_EQ((*one)["program"], program("live_target"));
  for (const char* key : {"bytes", "blocks", "peak_bytes"}) EXPECT_EQ((*one)[key], top[key]) << key;
  EXPECT_GT((*one)["resident_bytes"], 0);
  EXPECT_EQ((*one)["ledger_bytes"],
            tool_json({"status", "--json", process->id()})["processes"][0]["tables_bytes"]);
  EXPECT_GT((*one)["ledger_bytes"], 0);
}

TEST_F(ServeTest, MistakesAreExplained) {
  const auto process = served({out()});
  EXPECT_EQ(error("/nothing", 404), "no such path: /api/openapi.json lists them");
  EXPECT_HAS(error(api(*process, "/stacks?include=("), 400), "(");
  EXPECT_HAS(error(api(*process, "/stacks?by=colour"), 400), "colour");
  EXPECT_HAS(error(api(*process, "/stacks?suppressions=/etc/passwd"), 400), "no parameter");
  EXPECT_HAS(error(api(*process, "/stacks?include=a%0ab"), 400), "control");
  EXPECT_HAS(error("/debug/pprof/heap?seconds=61", 400), "1 to 60");
  EXPECT_HAS(error("/api/reports/2/leaks", 404), "/api/reports");
  EXPECT_HAS(error("/api/processes/x", 404), "pid");
  EXPECT_HAS(error(api(*process, "/export/elf"), 404), "elf");
  EXPECT_HAS(error("/api/diff?a=reports/1", 400), "b: give");
}

TEST_F(ServeTest, StatusesTellWhatIsThere) {
  write_file(temp() + "/damaged.memlog", "no memlog\n");
  fs::create_directory(temp() + "/none");
  write_file(temp() + "/gone.memlog", "");
  serve({"/proc/self/mem", temp() + "/damaged.memlog", temp() + "/none", temp() + "/gone.memlog"});
  fs::remove(temp() + "/gone.memlog");
  const std::string path = "/api/reports/";
  for (const char* view : {"/stacks", "/tree", "/leaks", "/export/pprof"}) {
    EXPECT_HAS(error(path + "1" + view, 500), "Input/output error");
    EXPECT_HAS(error(path + "2" + view, 500), "damaged.memlog:1:");
    EXPECT_HAS(error(path + "3" + view, 404), "none");
    EXPECT_HAS(error(path + "4" + view, 404), "gone.memlog");
  }
}

// A request for a report that is never completely there holds the lock of all that read names. The
// process has stacks that the metrics have to name.
TEST_F(ServeTest, MetricsWaitForNoOtherRequest) {
  const auto process = target();
  const std::string slow = temp() + "/slow.memlog";
  ASSERT_EQ(mkfifo(slow.c_str(), 0600), 0);
  serve({process->id(), slow});
  HttpConnection waiting(port());
  waiting.send(
      "GET /api/reports/1/stacks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::ofstream end(slow);  // once the request has opened it
  end << "# memlog" << std::flush;
  HttpConnection scraping(port());
  scraping.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const HttpAnswer metrics = parse_answer(scraping.read_all());
  EXPECT_EQ(metrics.status, 200);
  EXPECT_HAS(metrics.body, "function=\"site_kept\"} 1500\n");
  end.close();
  EXPECT_EQ(parse_answer(waiting.read_all()).status, 500);
}

TEST_F(ServeTest, PprofProfiles) {
  const auto process = target();
  const auto other = target();
  const std::string pid = process->id();
  serve({pid, other->id()});
  ASSERT_EQ(get_json("/debug/pprof/heap", 300)["processes"].size(), 2u);
  const HttpAnswer heap = get("/debug/pprof/heap?pid=" + pid);
  ASSERT_EQ(heap.status, 200) << heap.body;
  const std::string profile = unzipped(heap.body);
  EXPECT_HAS(profile, "site_kept");
  EXPECT_HAS(profile, "inuse_space");
  const auto go = [&](const std::string& path, const std::string& shown) {
    const Result result = expect_exit(run(plain(
        {"/usr/bin/go", "tool", "pprof", "-top", "-unit=B", "-symbolize=none", address() + path},
        {{"PPROF_TMPDIR", temp()}})));
    EXPECT_HAS(result.out, "Type: " + shown);
    return result.out;
  };
  EXPECT_HAS(go("/debug/pprof/heap?pid=" + pid, "inuse_space"), "1500B");
  EXPECT_HAS(go("/debug/pprof/allocs?pid=" + pid, "alloc_space"), "1500B");
}

// What changed in a second, and nothing from before. The process allocates once the first state has
// been read: only then does the request wait.
TEST_F(ServeTest, PprofOfAnInterval) {
  const auto busy = target_of_1000_bytes("busy");
  Process& process = *busy;
  serve({process.id()});
  const HttpAnswer answer = get("/debug/pprof/allocs?seconds=1");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string profile = unzipped(answer.body);
  EXPECT_HAS(profile, "site_passing") << "it allocates all the time";
  EXPECT_LACKS(profile, "site_kept") << "this was before";
}

TEST_F(ServeTest, EventsFollowTheProcess) {
  const auto process = served();
  HttpConnection connection(port());
  connection.send("GET " + api(*process, "/events") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto bytes = [&]() -> int64_t {
    connection.read_until("data: ");
    const json answer = json::parse(connection.read_until("\n"));
    for (const json& one : answer["functions"]) {
      if (one["function"] == "site_kept") return one["bytes"];
    }
    return -1;
  };
  EXPECT_EQ(bytes(), 1500);
  keep(*process, 100);
  while (bytes() != 1600) {
  }
  process->wait();
  EXPECT_HAS(connection.read_until("event: gone"), "event: gone");
}

TEST_F(ServeTest, TagsAndCompression) {
  const auto process = target();
  expect_exit(memlog({"report", process->id()}));
  serve({out()});
  const HttpAnswer first = get("/api/reports/1/stacks");
  const std::string tag = first.headers.at("etag");
  const HttpAnswer second = get("/api/reports/1/stacks", {{"If-None-Match", tag}});
  EXPECT_EQ(second.status, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(get("/api/reports/1/stacks", {{"If-None-Match", "\"0\""}}).status, 200);
  // As browsers ask: brotli would take seconds.
  for (const char* accepted : {"gzip", "gzip, deflate, br, zstd"}) {
    HttpAnswer small = get("/api/reports/1/stacks", {{"Accept-Encoding", accepted}});
    EXPECT_EQ(small.headers["content-encoding"], "gzip") << accepted;
    EXPECT_LT(small.body.size(), first.body.size());
  }
}

TEST_F(ServeTest, HostAndOriginAreChecked) {
  const auto process = served({"--allow-host", "web3.example"});
  const struct {
    const char* header;
    std::string value;
    int status;
  } kRequests[] = {{"Host", "evil.example", 421},
                   {"Host", "127.0.0.1.evil.example", 421},
                   {"Host", "", 421},
                   {"Host", "localhost:" + std::to_string(port()), 200},
                   {"Host", "Web3.example:7040", 200},
                   {"Origin", "http://evil.example", 403},
                   {"Origin", "null", 403},
                   {"Sec-Fetch-Site", "cross-site", 403},
                   {"Origin", address(), 200}};
  for (const auto& [header, value, status] : kRequests) {
    EXPECT_EQ(get("/metrics", {{header, value}}).status, status) << header << value;
  }
  const HttpAnswer page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_HAS(page.headers.at("content-security-policy"), "script-src 'self'");
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  const HttpAnswer drawn = get(api(*process, "/export/html"));
  EXPECT_EQ(drawn.headers.at("content-security-policy").find("sandbox "), 0u);
}

TEST_F(ServeTest, OnlyReadsUnlessAllowed) {
  const auto process = served();
  EXPECT_EQ(post(api(*process, "/report")).status, 403);
  EXPECT_EQ(http(port(), "DELETE", api(*process)).status, 405);
  EXPECT_EQ(http(port(), "PUT", "/").status, 403) << "it is to be told of --receive";
  const HttpAnswer head = http(port(), "HEAD", "/metrics");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  end();
  EXPECT_TRUE(all_logs().empty());
  serve({"--allow-actions", process->id()});
  EXPECT_EQ(get(api(*process, "/report")).status, 405);
  EXPECT_EQ(post(api(*process, "/report"), {{"Origin", "http://evil.example"}}).status, 403);
  // Also other users of this machine reach this port. A browser tells where a page is from.
  EXPECT_EQ(post(api(*process, "/report")).status, 403);
  const std::string other = std::to_string(getpid());
  EXPECT_EQ(post("/api/processes/" + other + "/attach", from_here()).status, 404)
      << "it is not served";
  const HttpAnswer answer = post(api(*process, "/report?label=now"), from_here());
  EXPECT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(logs_of("live_target").size(), 1u);
}

// Blocks of the watch that live on count; those from before and those that are freed at once do
// not.
TEST_F(ServeTest, ExpireTellsOfNewBlocksThatLiveOn) {
  const auto busy = target_of_1000_bytes("busy");
  Process& process = *busy;
  const std::string pid = process.id();
  const std::string path = api(process, "/expire?after=100ms&seconds=60&max_expired=1");
  serve({pid});
  EXPECT_EQ(post(path, from_here()).status, 403) << "it only reads";
  end();
  serve({"--allow-actions", pid});
  EXPECT_EQ(post(path).status, 403) << "who asks?";
  EXPECT_EQ(post(path, {{"Origin", "http://evil.example"}}).status, 403);
  EXPECT_EQ(get(path).status, 405);
  for (const char* query : {"after=soon", "after=50ms", "after=5s&seconds=5", "seconds=61"}) {
    EXPECT_EQ(post(api(process, std::string("/expire?") + query), from_here()).status, 400)
        << query;
  }
  EXPECT_EQ(post("/api/processes/" + std::to_string(getpid()) + "/expire", from_here()).status,
            404);
  HttpAnswer answer;
  {
    const Keeping keeping(process, 64);
    answer = post(path, from_here());
  }
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json expired = json::parse(answer.body);
  EXPECT_EQ(expired["view"], "expire");
  EXPECT_EQ(expired["after_ms"], 100);
  EXPECT_GE(expired["watched_ms"], 100);
  ASSERT_EQ(expired["functions"].size(), 1u) << expired;
  const json& kept = expired["functions"][0];
  EXPECT_EQ(kept["function"], "site_kept");
  EXPECT_GE(kept["may_leak_blocks"], 1);
  EXPECT_EQ(kept["may_leak_bytes"], 64 * kept["may_leak_blocks"].get<int64_t>());
  EXPECT_EQ(kept["expired_freed_blocks"], 0);
  const json described =
      get_json("/api/openapi.json")["paths"]["/api/processes/{pid}/expire"]["post"];
  for (const auto& [key, value] : expired.items()) {
    EXPECT_TRUE(described["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
                    .contains(key))
        << key;
  }
}

TEST_F(ServeTest, TokenIsAskedFor) {
  const auto process = target();
  const std::string token = write_token();
  chmod((temp() + "/token").c_str(), 0644);
  EXPECT_HAS(
      expect_exit(memlog({"serve", "--token-file", temp() + "/token", process->id()}), 1).err,
      "chmod 600");
  write_token();
  serve({"--token-file", temp() + "/token", process->id()});
  EXPECT_EQ(get("/").status, 200) << "the page holds no data";
  EXPECT_EQ(get("/metrics").status, 401);
  for (const std::string& wrong :
       {token + "0", std::string(), std::string("0123456789abcdef0124")}) {
    EXPECT_EQ(get("/metrics", {{"Authorization", "Bearer " + wrong}}).status, 401) << wrong;
  }
  EXPECT_EQ(get("/metrics", {{"Authorization", "Bearer " + token}}).status, 200);
  EXPECT_EQ(get("/api/session").status, 401);
  const HttpAnswer session = get("/api/session", {{"Authorization", "Bearer " + token}});
  const std::string cookie = session.headers.at("set-cookie");
  EXPECT_HAS(cookie, "HttpOnly; SameSite=Strict");
  EXPECT_LACKS(cookie, token);
  EXPECT_EQ(get("/metrics", {{"Cookie", cookie.substr(0, cookie.find(';'))}}).status, 200);
  EXPECT_EQ(get("/metrics", {{"Cookie", "memlog_session="}}).status, 401);
}

// With Debian's openssl and Python's client.
class TlsTest : public ServeTest {
 protected:
  std::string file(const std::string& name) const { return temp() + "/" + name; }
  // What a client says of /metrics: its status, or why there was none.
  std::string fetch(const std::string& certificate, const std::string& setting = "") const {
    const Result result =
        expect_exit(run(plain({"/usr/bin/python3", "-c", R"(
import http.client, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
if sys.argv[3]: context.load_cert_chain(sys.argv[3] + '.pem', sys.argv[3] + '.key')
exec(sys.argv[4])
try:
    connection = http.client.HTTPSConnection('127.0.0.1', int(sys.argv[1]), context=context)
    connection.request('GET', '/metrics')
    answer = connection.getresponse()
    text = answer.read()
    print(answer.status, 'mtrace_live_bytes' in text.decode())
except (OSError, http.client.HTTPException) as error:
    print('none:', type(error).__name__)
)",
                               std::to_string(port()), file("server.pem"),
                               certificate.empty() ? "" : file(certificate), setting})));
    return lines_of(result.out).at(0);
  }
};

TEST_F(TlsTest, EncryptsAndAsksForCertificates) {
  for (const char* name : {"server", "scraper", "stranger"}) make_certificate(temp(), name);
  const auto process = target();
  const Words tls = {"--tls-cert", file("server.pem"), "--tls-key", file("server.key"),
                     process->id()};
  serve(tls);
  EXPECT_TRUE(told().starts_with("listening at https://127.0.0.1:")) << told();
  EXPECT_EQ(fetch(""), "200 True");
  EXPECT_EQ(fetch("", "context.maximum_version = ssl.TLSVersion.TLSv1_2"), "200 True");
  EXPECT_EQ(fetch("",
                  "import warnings; warnings.simplefilter('ignore'); "
                  "context.minimum_version = ssl.TLSVersion.TLSv1; "
                  "context.maximum_version = ssl.TLSVersion.TLSv1_1")
                .find("none: "),
            0u);
  EXPECT_EQ(get("/metrics").status, 0) << "not encrypted";
  expect_exit(end());
  Words asking = tls;
  serve(joined({"--client-ca", file("scraper.pem")}, asking));
  EXPECT_EQ(fetch("scraper"), "200 True");
  EXPECT_EQ(fetch("").find("none: "), 0u);
  EXPECT_EQ(fetch("stranger").find("none: "), 0u);
  expect_exit(end());
}

TEST_F(TlsTest, FilesThatAreNoGoodAreNamed) {
  for (const char* name : {"server", "other"}) make_certificate(temp(), name);
  const auto expect = [&](Words words, const std::string& text) {
    EXPECT_HAS(expect_exit(memlog(joined({"serve", "--listen", "127.0.0.1:0"}, words)), 1).err,
               text);
  };
  const std::string certificate = file("server.pem");
  expect({"--tls-cert", file("none"), "--tls-key", file("server.key")}, file("none") + ": ");
  expect({"--tls-cert", certificate, "--tls-key", file("other.key")}, file("other.key") + ": ");
  expect({"--tls-cert", certificate, "--tls-key", file("server.key"), "--client-ca",
          file("server.key")},
         file("server.key") + ": no certificates");
  chmod(file("server.key").c_str(), 0644);
  expect({"--tls-cert", certificate, "--tls-key", file("server.key")}, "chmod o-rwx");
}

TEST_F(ServeTest, UnixSocket) {
  const auto process = target();
  const std::string path = temp() + "/socket";
  serve({process->id()}, "unix:" + path);
  EXPECT_EQ(told(), "listening at unix:" + path);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_HAS(test::get(path, "/metrics"), "mtrace_live_bytes");
  const Result second = expect_exit(memlog({"serve", "--listen", "unix:" + path}), 1);
  EXPECT_HAS(second.err, "Address already in use");
  end();
  EXPECT_FALSE(fs::exists(path));
}

// Requests that never end keep nobody waiting, and one with endless headers is cut off.
TEST_F(ServeTest, SlowAndLargeRequests) {
  const auto process = served();
  std::vector<std::unique_ptr<HttpConnection>> slow;
  for (int i = 0; i < 25; ++i) {
    slow.push_back(std::make_unique<HttpConnection>(port()));
    slow.back()->send("GET /metrics HTTP/1.1\r\nHost: local");
  }
  EXPECT_EQ(get("/metrics").status, 200);
  HttpConnection large(port());
  large.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n");
  size_t sent = 0;
  const std::string line = "X: " + std::string(4000, 'x') + "\r\n";
  while (large.send(line)) {
    sent += line.size();
    ASSERT_LT(sent, 100u << 20) << "it reads on and on";
  }
  EXPECT_EQ(get("/metrics").status, 200);
  // The server ends the slow ones by itself.
  for (const auto& one : slow) EXPECT_NE(parse_answer(one->read_all()).status, 200);
  expect_exit(end());
}

TEST_F(ServeTest, TooManyConnections) {
  const auto process = served();
  std::vector<std::unique_ptr<HttpConnection>> held;
  const auto hold = [&](int count, const char* from) {
    for (int i = 0; i < count; ++i) {
      held.push_back(std::make_unique<HttpConnection>(port(), from));
      held.back()->send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
      held.back()->read_until("data: ");
    }
  };
  hold(32, "127.0.0.1");
  EXPECT_EQ(status_for("/metrics", "127.0.0.1"), 503) << "the others are for other addresses";
  EXPECT_EQ(status_for("/metrics", "127.0.0.2"), 200);
  hold(32, "127.0.0.2");
  EXPECT_EQ(status_for("/metrics", "127.0.0.3"), 503);
  held.clear();
  wait_until("the connections are free again", [&] { return get("/metrics").status == 200; });
}

TEST_F(ServeTest, TooManyRequests) {
  const auto process = served({"--max-rate", "2"});
  std::vector<int> statuses;
  for (int i = 0; i < 4; ++i) statuses.push_back(get("/serve.css").status);
  EXPECT_EQ(statuses, std::vector<int>(4, 200)) << "two seconds' worth at once";
  // However slow this machine is, a hundred requests do not take fifty seconds.
  int refused = 0;
  HttpAnswer last;
  for (int i = 0; i < 100; ++i) {
    last = get("/serve.css");
    refused += last.status == 429;
    if (last.status == 429) {
      EXPECT_EQ(last.headers.at("retry-after"), "1");
      EXPECT_EQ(json::parse(last.body)["error"], "too many requests a second");
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(status_for("/serve.css", "127.0.0.2"), 200) << "each address has its own";
}

// A range is a copy of the answer; thousands of them would fill the memory.
TEST_F(ServeTest, RangesAreIgnored) {
  const auto process = served();
  std::string ranges = "bytes=0-";
  while (ranges.size() < 6000) ranges += ",0-";
  const HttpAnswer answer = get("/serve.js", {{"Range", ranges}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, read_file(source_dir() + "/src/memlog/surface/serve/page/serve.js"));
}

// A process with mounts and pids of its own, as in a container. Its program lies where this mount
// namespace has nothing.
TEST_F(ServeTest, ProcessInAContainer) {
  const Words container = {"/usr/bin/unshare", "--user",       "--map-root-user", "--pid", "--fork",
                           "--mount",          "--mount-proc", "/bin/sh",         "-c"};
  Words words = container;
  words.emplace_back("true");
  if (!run(plain(words)).exited(0)) {
    GTEST_SKIP() << "this user may not make namespaces: processes in containers were not tried";
  }
  fs::create_directory(temp() + "/place");
  words = container;
  words.push_back("mount --bind \"$1\" \"$2\" && exec \"$2/live_target\"");
  for (const std::string& word :
       {std::string("sh"), fs::path(program("live_target")).parent_path().string(),
        temp() + "/place"}) {
    words.push_back(word);
  }
  Process process(traced(words, {{"MTRACE_LEDGER", temp()}}), "go");
  keep(process, 1500);
  const std::vector<pid_t> inside = children_of(process.pid());
  ASSERT_EQ(inside.size(), 1u);
  ASSERT_FALSE(fs::exists(temp() + "/place/live_target"));
  const std::string pid = std::to_string(inside[0]);
  serve({pid});
  EXPECT_EQ(kept_in(get("/metrics").body, pid), "1500");
  const json stacks = get_json("/api/processes/" + pid + "/stacks?include=site_kept");
  EXPECT_EQ(stacks["reports"][0]["stacks"][0]["bytes"], 1500) << stacks;
  EXPECT_EQ(get_json("/api/processes/" + pid)["process"]["program"], temp() + "/place/live_target");
  end();
  serve({"--sysroot", temp(), pid});
  EXPECT_EQ(kept_in(get("/metrics").body, pid).substr(0, 5), "none:") << "not the files of here";
}

// Chromium shows the page, and what a user does with it; see serve_page.cjs.
TEST_F(ServeTest, PageInABrowser) {
  const auto process = target();
  const std::string token = write_token();
  serve({"--token-file", temp() + "/token", process->id()});
  const std::string guarded = address();
  const auto first = keep_server();
  serve(*process);
  record_timeline(*process);
  Process browser(script("serve_page.cjs", {address(), guarded, token, process->id()}), "marked");
  keep(*process, 700);
  browser.write("go\n");
  expect_exit(browser.wait());
}

// In the answers, and in the first line of the page.
TEST_F(ServeTest, ResourcesOfTheProgramsOwn) {
  Process process(traced({program("resources")}, {{"MTRACE_LEDGER", temp()}}), "ready");
  serve(process);
  EXPECT_EQ(get_json(api(process, "/functions"))["process"]["kinds"],
            json::parse(R"({"cuda": {"bytes": 5000, "blocks": 1}, "fd": {"bytes": 8, "blocks": 8},
                            "gl-Buffers": {"bytes": 1, "blocks": 1},
                            "gl-Textures": {"bytes": 3, "blocks": 3}})"));
  write_file(temp() + "/line.cjs", R"(
    const {drive, open} = require(process.argv[2]);
    drive(async (browser) => {
      const {page} = await open(browser, process.argv[3]);
      await page.locator('#told', {hasText: ' live in '}).waitFor();
      console.log(await page.textContent('#told'));
    });)");
  Command browser = script("browser.cjs", {address() + "/#" + process.id()});
  browser.argv.insert(browser.argv.begin() + 2, temp() + "/line.cjs");
  EXPECT_HAS(run(browser).out,
             ", @cuda 5,000 in 1, @fd 8 in 8, @gl-Buffers 1 in 1, @gl-Textures 3 in 3, at ");
  expect_exit(process.wait());
}

// Chromium shows served reports, and writes one more; see serve_reports.cjs.
TEST_F(ServeTest, ReportsInABrowser) {
  const auto process = target();
  const std::string pid = process->id();
  for (int bytes = 1000; bytes < 9000; bytes += 1000) {
    keep(*process, bytes);
    expect_exit(memlog({"report", pid}));
  }
  const std::string other = temp() + "/first";
  fs::create_directory(other);
  fs::copy(report_path("live_target", process->pid(), 1), other);
  serve({"--allow-actions", pid, out(), other});
  Process browser(script("serve_reports.cjs", {address(), pid, out(), other}), "watching");
  {
    const Keeping keeping(*process, 64);
    browser.read_until("watched");
  }
  expect_exit(browser.wait());
  EXPECT_EQ(logs_of(process->pid(), 9)[8].get("label"), "by hand & more");
}

// Debian's Prometheus scrapes, and answers a query, also when memory has grown.
TEST_F(ServeTest, PrometheusScrapes) {
  const auto process = served();
  const HttpAnswer text = get("/metrics", {{"Accept", "*/*"}});
  EXPECT_EQ(text.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  write_file(temp() + "/metrics", text.body);
  const Result lint =
      expect_exit(run(plain({"/bin/sh", "-c", "promtool check metrics <" + temp() + "/metrics"})));
  EXPECT_EQ(lint.out + lint.err, "");
  write_file(temp() + "/prometheus.yml", R"(
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: mtrace
    static_configs: [{targets: ['127.0.0.1:)" +
                                             std::to_string(port()) + "']}]\n");
  const int own = free_port();
  Process prometheus(plain({"/usr/bin/prometheus", "--config.file=" + temp() + "/prometheus.yml",
                            "--storage.tsdb.path=" + temp() + "/data", "--log.level=error",
                            "--web.listen-address=127.0.0.1:" + std::to_string(own)}));
  const auto wait_for_sample = [&](const std::string& value) {
    wait_until("a sample of " + value, [&] {
      try {
        const std::string query =
            "/api/v1/query?query=mtrace_function_live_bytes%7Bfunction%3D%22site_kept%22%7D";
        return http(own, "GET", query, {{"Connection", "close"}}).body.find(value) !=
               std::string::npos;
      } catch (const std::runtime_error&) {
        return false;  // it does not listen yet
      }
    });
  };
  wait_for_sample("\"1500\"");
  keep(*process, 2000000);
  wait_for_sample("\"2001500\"");
}

}  // namespace
}  // namespace mtrace::test
