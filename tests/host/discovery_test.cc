// memlog serve --announce and memlog collect --discover, in network namespaces of the test's own.
#include "host_test.h"
#include "http_client.h"

namespace mtrace::test {
namespace {

class DiscoveryTest : public HostTest {
 protected:
  // Runs `script` with /bin/sh in a network namespace of its own: "$0" is memlog, the directory
  // out(). serve() in it starts a server in the background, and returns once it listens.
  Command isolated(const std::string& script) const {
    static const char kServe[] = R"(
      serve() {
        "$0" serve "$@" >../told 2>&1 &
        servers="$servers $!"
        until grep -q listening ../told; do kill -0 $! && sleep 0.01; done
      }
      ip link set lo up
    )";
    Command command = tool({});
    command.argv = {"/usr/bin/unshare", "--user", "--map-root-user", "--net",
                    "/bin/sh",          "-ec",    kServe + script,   memlog_tool()};
    command.env["PATH"] += ":/usr/sbin:/sbin";
    return command;
  }
  bool may_isolate() const { return run(isolated("")).exited(0); }
};

constexpr char kNotPermitted[] = "this user may not make network namespaces";

TEST_F(DiscoveryTest, FindsOnlyWhoAnnouncesItself) {
  if (!may_isolate()) GTEST_SKIP() << kNotPermitted;
  expect_exit(run(traced({program("one_block")})));
  const Result result = expect_exit(run(isolated(R"(
    serve --listen 127.0.0.1:7040 --announce .
    serve --listen 127.0.0.2:7050 .
    serve --listen 127.0.0.3:7060 --announce .
    until grep -q :7040 ../list && grep -q :7060 ../list; do
      rm -rf ../to
      "$0" collect --discover --wait 1s --to ../to >../list
    done
    cat ../list
    kill $servers
    wait
  )")));
  const Words lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 3u) << result.out;
  EXPECT_TRUE(lines[0].starts_with("http://127.0.0.1:7040  ")) << lines[0];
  EXPECT_HAS(lines[0], ", memlog ");
  EXPECT_TRUE(lines[1].starts_with("http://127.0.0.3:7060  ")) << lines[1];
  EXPECT_EQ(lines[2], "1 report copied to ../to; 1 there already");
}

// From one machine to another, over a cable. Who answers without https gets no token.
TEST_F(DiscoveryTest, SendsTheTokenOnlyToTrustedServers) {
  if (!may_isolate()) GTEST_SKIP() << kNotPermitted;
  expect_exit(run(traced({program("one_block")})));
  write_private(temp() + "/token", "0123456789abcdef\n");
  make_certificate(temp(), "server", "10.77.0.2");
  const Result result = expect_exit(run(isolated(R"(
    mkfifo ../here ../go ../end
    ip link add v0 type veth peer name v1
    ip addr add 10.77.0.1/24 dev v0
    ip link set v0 up
    unshare --net /bin/sh -ec '
      echo >../here
      cat ../go
      ip link set lo up
      ip addr add 10.77.0.2/24 dev v1
      ip link set v1 up
      "$0" serve --listen 10.77.0.2:7040 --announce --token-file ../token \
          --tls-cert ../server.pem --tls-key ../server.key . >../told1 &
      servers=$!
      "$0" serve --listen 10.77.0.2:7050 --announce --token-file ../token . >../told2 &
      servers="$servers $!"
      cat ../end
      kill $servers
      wait' "$0" &
    other=$!
    cat ../here
    ip link set v1 netns $other
    echo >../go
    until grep -q :7040 ../list && grep -q :7050 ../list; do
      rm -rf ../to
      "$0" collect --discover --wait 1s --token-file ../token --ca-file ../server.pem \
          --to ../to >../list
    done
    echo >../end
    wait $other
    cat ../list
  )")));
  Words lines = lines_of(result.out);
  std::erase(lines, "");  // of the pipes
  ASSERT_EQ(lines.size(), 3u) << result.out;
  EXPECT_TRUE(lines[0].starts_with("https://10.77.0.2:7040  ")) << lines[0];
  EXPECT_LACKS(lines[0], "left out");
  EXPECT_TRUE(lines[1].starts_with("http://10.77.0.2:7050  ")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with(": left out: without https, anybody could read the token"))
      << lines[1];
  EXPECT_EQ(lines[2], "1 report copied to ../to");
}

}  // namespace
}  // namespace mtrace::test
