// Programs of others, by tools/hosts/run.py in its quick form; and that it finds what is wrong.
#include "host_test.h"

namespace mtrace::test {
namespace {

class HostsTest : public HostTest {
 protected:
  Result script(const std::string& name, Words arguments) {
    return run(plain(
        joined({"/usr/bin/python3", "-B", source_dir() + "/tools/hosts/" + name}, arguments)));
  }
  // Hosts run in namespaces of their own, which takes root.
  bool namespaces() {
    return run(plain({"/usr/bin/unshare", "--mount", "--pid", "--net", "--ipc", "--fork",
                      "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/mnt"}))
        .exited(0);
  }
};

TEST_F(HostsTest, FindsWhatIsHurt) {
  if (!namespaces()) GTEST_SKIP() << "no namespaces here";
  const Result result = expect_exit(script("self_test.py", {build_dir()}));
}

TEST_F(HostsTest, QuickOnes) {
  if (!namespaces()) GTEST_SKIP() << "no namespaces here";
  const Result result = expect_exit(
      script("run.py", {"--quick", "--build", build_dir(), "--output", temp() + "/hosts"}));
}

}  // namespace
}  // namespace mtrace::test
