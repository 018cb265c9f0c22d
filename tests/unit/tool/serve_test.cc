// memlog serve without its sockets: addresses, parameters, secrets, and that slow answers keep no
// other waiting.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "expect.h"
#include "surface/serve/access.h"
#include "surface/serve/metrics.h"
#include "surface/serve/request.h"
#include "surface/serve/site.h"
#include "view/analyze/responsible.h"

namespace mtrace::serve {
namespace {

using nlohmann::json;

Request get(const std::string& path, std::map<std::string, std::string> headers = {}) {
  headers.emplace("host", "127.0.0.1:7040");
  return {.method = "GET", .path = path, .query = {}, .headers = std::move(headers)};
}

AccessRules local_rules() {
  AccessRules rules;
  rules.address = read_address("127.0.0.1:7040");
  return rules;
}

// The list of processes, the page and the metrics are answered while a command runs, which may take
// minutes.
TEST(Serve, CommandsKeepNobodyWaiting) {
  SiteOptions options;
  options.reports = {"/reports"};
  options.responsible = std::make_shared<const analyze::Responsible>();
  Site* itself = nullptr;
  int listed = 0;
  int shown = 0;
  int measured = 0;
  const auto command = [&](const cli::Command&, const cli::Arguments&) -> CommandAnswer {
    std::thread other([&] {
      listed = itself->answer(get("/api/processes")).status;
      shown = itself->answer(get("/")).status;
      measured = itself->answer(get("/metrics")).status;
    });
    other.join();
    return {{}, "{}\n", ""};
  };
  Site site(std::move(options), Access(local_rules()), command);
  itself = &site;
  EXPECT_EQ(site.answer(get("/api/reports/1/stacks")).status, 200);
  EXPECT_EQ(listed, 200);
  EXPECT_EQ(shown, 200);
  EXPECT_EQ(measured, 200);
}

// What promtool check metrics asks for, for where it is not installed.
TEST(Serve, MetricsFollowTheRulesOfPrometheus) {
  MeasuredProcess one = {};
  one.totals.pid = 7;
  one.totals.name = "app";
  one.totals.cost.stopped = 1'250'000;  // nanoseconds
  one.totals.cost.processor = 3'000'000'000;
  const std::string text = metrics({one}, false);
  EXPECT_HAS(text, "\nmtrace_report_seconds_total{pid=\"7\",name=\"app\"} 0.00125\n");
  EXPECT_HAS(text, "\nmtrace_processor_seconds_total{pid=\"7\",name=\"app\"} 3\n");
  std::map<std::string, std::string> types;
  std::set<std::string> helped;
  std::set<std::string> sampled;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string key;
    std::string name;
    words >> hash >> key >> name;
    if (key == "TYPE") {
      EXPECT_TRUE(types.emplace(name, line.substr(line.rfind(' ') + 1)).second) << line;
    } else if (key == "HELP") {
      helped.insert(name);
    } else {
      ASSERT_NE(hash, "#") << line;
      sampled.insert(line.substr(0, line.find('{')));
    }
  }
  sampled.insert("mtrace_function_live_bytes");  // the process has no function
  EXPECT_EQ(sampled.size(), types.size());
  for (const std::string& name : sampled) {
    ASSERT_TRUE(types.contains(name)) << name;
    EXPECT_TRUE(helped.contains(name)) << name;
    EXPECT_EQ(types[name] == "counter", name.ends_with("_total")) << name;
    for (const char* unit : {"milliseconds", "microseconds", "nanoseconds", "kilobytes", "kib"}) {
      EXPECT_LACKS(name, unit);
    }
  }
}

// A command says what is wrong; the request gets its first line, and the status of the kind of
// fault, however that is worded.
TEST(Serve, CommandsThatFail) {
  SiteOptions options;
  options.reports = {"/reports"};
  options.responsible = std::make_shared<const analyze::Responsible>();
  CommandAnswer next;
  std::optional<cli::Arguments> given;
  Site site(std::move(options), Access(local_rules()),
            [&](const cli::Command&, const cli::Arguments& arguments) {
              given = arguments;
              return next;
            });
  const auto ask = [&](CommandAnswer answer) {
    next = std::move(answer);
    Request request = get("/api/reports/1/stacks");
    request.query.emplace("include", "--output=/etc/passwd");
    return site.answer(request);
  };
  EXPECT_EQ(ask({{}, "{}\n", ""}).body, "{}\n");
  EXPECT_EQ(given->command(), "show");
  EXPECT_TRUE(given->has("--json") && given->has("--sum"));
  EXPECT_EQ(given->value("--include"), "--output=/etc/passwd");
  EXPECT_FALSE(given->has("--output")) << "a value is never an option of its own";
  EXPECT_EQ(given->operands(), std::vector<std::string>{"/reports"});
  using cli::Fault;
  EXPECT_EQ(ask({{1, Fault::kOther}, "{}\n", "memlog: a report is missing\n"}).status, 200);
  const Response gone = ask({{1, Fault::kNotFound}, "", "memlog: no report\nmore\n"});
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(json::parse(gone.body)["error"], "no report");
  EXPECT_EQ(ask({{1, Fault::kOther}, "", "memlog: cannot read it\n"}).status, 500);
  EXPECT_EQ(ask({{2, Fault::kOther}, "", "memlog: damaged\n"}).status, 500);
  EXPECT_EQ(ask({{2, Fault::kUsage}, "", "show: no such order\n"}).status, 400);
}

TEST(Serve, Addresses) {
  EXPECT_EQ(read_address("127.0.0.1:7040").text(), "http://127.0.0.1:7040");
  EXPECT_EQ(read_address("localhost:1").text(), "http://127.0.0.1:1");
  EXPECT_EQ(read_address("[::1]:65535").text(), "http://[::1]:65535");
  EXPECT_EQ(read_address("unix:/run/a b").text(), "unix:/run/a b");
  EXPECT_TRUE(read_address("127.1.2.3:0").is_local());
  EXPECT_TRUE(read_address("[::1]:0").is_local());
  for (const char* open : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(read_address(open).is_local()) << open;
  }
  for (const char* wrong : {"", "7040", ":7040", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1",
                            "::1:7040", "[127.0.0.1]:7040", "web3:7040", "unix:", "127.1:7040",
                            "127.evil.example:7040", "127.0.0.1:7040 "}) {
    EXPECT_THROW(read_address(wrong), std::runtime_error) << wrong;
  }
}

TEST(Serve, HostsThatAreKnown) {
  AccessRules rules = local_rules();
  rules.hosts = {"web3.example"};
  const Access access(rules);
  const auto status = [&](const std::string& host) {
    const auto refusal = access.refusal(get("/", {{"host", host}}), true);
    return refusal ? refusal->status : 200;
  };
  for (const char* known :
       {"127.0.0.1", "127.0.0.1:7040", "localhost:1", "LocalHost", "WEB3.example:443"}) {
    EXPECT_EQ(status(known), 200) << known;
  }
  for (const char* foreign : {"", ":7040", "localhost.", "localhost.evil", "127.0.0.2", "[::1]",
                              "web3.example.evil", "evil,localhost", "localhost@evil"}) {
    EXPECT_EQ(status(foreign), 421) << foreign;
  }
}

TEST(Serve, SecretsAreEqualOrNot) {
  EXPECT_TRUE(equal_secret("secret", "secret"));
  for (const char* given : {"", "s", "secre", "secret ", "Secret", "secretsecret"}) {
    EXPECT_FALSE(equal_secret(given, "secret")) << given;
  }
}

TEST(Serve, ParametersOfViews) {
  const std::vector<std::string> allowed = {"include", "grew", "limit", "output"};
  const auto options = [&](const Query& query) {
    return view_options(query, cli::show_command().manual, allowed);
  };
  EXPECT_EQ(options({{"include", "a=b"}, {"include", ""}, {"grew", "1"}, {"limit", "5"}}),
            (Given{{"--grew", ""}, {"--include", "a=b"}, {"--include", ""}, {"--number", "5"}}));
  EXPECT_EQ(options({{"grew", "0"}}), Given());
  EXPECT_THROW(options({{"grew", "maybe"}}), QueryError);
  EXPECT_THROW(options({{"exclude", "a"}}), QueryError) << "an option, but not for this path";
  EXPECT_THROW(options({{"output", "/tmp/x"}}), QueryError) << "the command has no such option";
  EXPECT_THROW(options({{"include", std::string("a\0b", 3)}}), QueryError);
  EXPECT_THROW(options({{"include", std::string(1001, 'a')}}), QueryError);
  EXPECT_EQ(number_of({{"n", "7"}}, "n", 1, 1, 7), 7);
  EXPECT_EQ(number_of({}, "n", 3, 1, 7), 3);
  for (const char* wrong : {"", "0", "8", "-1", "1.5", "99999999999999999999", "7x"}) {
    EXPECT_THROW(number_of({{"n", wrong}}, "n", 1, 1, 7), QueryError) << wrong;
  }
}

TEST(Serve, LabelsOfMetrics) {
  EXPECT_EQ(label_text("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
  EXPECT_EQ(label_text("std::vector<int>"), "std::vector<int>");
}

// No two routes match one path; and no parameter of a view names a file.
TEST(Serve, RoutesMatchTheirPaths) {
  const std::set<std::string> kNoOptions = {"a", "b", "log"};
  for (const Route& route : routes()) {
    for (const std::string& name : route.query) {
      if (route.view.command == nullptr || kNoOptions.contains(name)) continue;
      const cli::Option* const option = option_of(route.view.command().manual, name);
      ASSERT_NE(option, nullptr) << route.path << " " << name;
      EXPECT_LACKS(std::string(option->value), "FILE") << name;
      EXPECT_LACKS(std::string(option->value), "DIR") << name;
    }
    std::string path = route.path;
    for (size_t at; (at = path.find('{')) != std::string::npos;) {
      path.replace(at, path.find('}') - at + 1, "1");
    }
    const auto match = find_route(route.method, path);
    ASSERT_TRUE(match) << path;
    EXPECT_EQ(match->route, &route) << path;
    EXPECT_FALSE(find_route(route.method, path + "/")) << path;
  }
  for (const char* none :
       {"", "nothing", "//", "/api", "/api/processes//stacks", "/API/processes"}) {
    EXPECT_FALSE(find_route("GET", none)) << none;
  }
}

}  // namespace
}  // namespace mtrace::serve
