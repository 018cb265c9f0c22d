// The file behind the tables in a child that goes on with its parent's.
#include "base/table_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine.h"
#include "concurrent.h"
#include "directories.h"

namespace mtrace::test {
namespace {

constexpr size_t kWindow = 4 * machine::kMostPage;
alignas(machine::kMostPage) uint64_t g_window[kWindow / sizeof(uint64_t)];

class Turns {
 public:
  Turns() {
    if (::pipe(ends_) != 0) ::_exit(90);
  }
  void give() { check(::write(ends_[1], "", 1)); }
  void take() {
    char byte;
    check(::read(ends_[0], &byte, 1));
  }

 private:
  static void check(ssize_t done) {
    if (done != 1) ::_exit(91);
  }
  int ends_[2];
};

// A part with a value, to which the window leads.
uint64_t* add_part(uint64_t value) {
  base::TableTurn turn;
  auto* part = static_cast<uint64_t*>(turn.grow(2 * machine::kMostPage));
  if (part == nullptr) ::_exit(92);
  *part = value;
  g_window[0] = reinterpret_cast<uint64_t>(part);
  return part;
}

// 0: the child followed the address that it has, and changed nothing of its parent's.
int parent_and_child(const std::string& path) {
  if (base::create_table_file(path.c_str(), g_window, kWindow) != 0) return 1;
  Turns added, detached, replaced;
  const pid_t child = ::fork();
  if (child == 0) {
    added.take();
    if (!base::detach_table_file(true)) ::_exit(2);
    detached.give();
    replaced.take();
    auto* part = reinterpret_cast<uint64_t*>(g_window[0]);
    if (*part != 7) ::_exit(3);
    *part = g_window[1] = 9;
    ::_exit(0);
  }
  const uint64_t* first = add_part(7);
  added.give();
  detached.take();
  const uint64_t* second = add_part(8);
  replaced.give();
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) return 4;
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  return *first == 7 && *second == 8 && g_window[1] == 0 ? 0 : 5;
}

// What the parent adds after the fork is not mapped in the child, but a shared page leads there.
TEST(TableFile, AChildMidwayFollowsWhatItsParentHasAdded) {
  const TemporaryDirectory directory;
  EXPECT_EQ(status_in_child([&] { return parent_and_child(directory / "tables"); }), 0);
}

}  // namespace
}  // namespace mtrace::test
