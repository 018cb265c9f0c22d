// Whatever becomes of a request, memlog lets every thread go that it has stopped: a memlog that
// runs for long (run, attach --every) would otherwise hold it for ever.
#include "process/ptrace/tasks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>
#include <vector>

#include "process/inspect/error.h"
#include "process/inspect/target_memory.h"

namespace mtrace::process {
namespace {

// A process that a test stops.
class Child {
 public:
  template <typename Work>
  explicit Child(const Work& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    work();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool is_free() const { return task_status(pid_, pid_, "TracerPid") == "0"; }
  char state() const { return task_state(pid_, pid_); }
  void wait_for(char state) const {
    while (this->state() != state) std::this_thread::yield();
  }

 private:
  pid_t pid_;
};

void spin() {
  for (;;) asm volatile("");
}

// What a child tells without a system call.
class SharedFlag {
 public:
  SharedFlag()
      : flag_(static_cast<std::atomic<bool>*>(::mmap(nullptr, sizeof *flag_, PROT_READ | PROT_WRITE,
                                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (flag_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedFlag() { ::munmap(flag_, sizeof *flag_); }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;

  void set() const { flag_->store(true); }
  void wait() const {
    while (!flag_->load()) std::this_thread::yield();
  }

 private:
  std::atomic<bool>* flag_;
};

// Holds the child while `work` is done with it.
template <typename Work>
void hold(const Child& child, const Work& work) {
  const TargetMemory memory(child.pid());
  Restarts restarts(child.pid(), memory, {});
  Tasks tasks(child.pid(), restarts);
  work(tasks);
}

constexpr auto kLong = std::chrono::seconds(60);
const Clock::time_point kPast{};

// A new process runs, too, while it still returns from fork, which is a system call to come to.
TEST(TasksTest, ThreadThatComesToNoSystemCallInTime) {
  const SharedFlag spins;
  const Child child([&] {
    spins.set();
    spin();
  });
  spins.wait();
  hold(child, [&](Tasks& tasks) {
    ASSERT_TRUE(tasks.stop_all(Clock::now() + kLong));
    EXPECT_THROW(tasks.run_to_system_call(child.pid(), kPast), AttachError);
  });
  EXPECT_TRUE(child.is_free());
  EXPECT_EQ(child.state(), 'R');
}

TEST(TasksTest, ThreadThatIsNotStoppedAgainInTime) {
  for (int round = 0; round < 50; ++round) {
    const Child child(spin);
    child.wait_for('R');
    hold(child, [&](Tasks& tasks) {
      ASSERT_TRUE(tasks.stop_all(Clock::now() + kLong));
      tasks.interrupt(child.pid(), kPast);
    });
    EXPECT_TRUE(child.is_free());
    EXPECT_EQ(child.state(), 'R');
  }
}

// In vfork a thread stops only when its child ends.
TEST(TasksTest, ThreadThatStopsAfterMemlogGaveUp) {
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const Child child([&] {
    ::close(gate[1]);
    char byte;
    if (::vfork() == 0) ::_exit(static_cast<int>(::read(gate[0], &byte, 1)));
    spin();
  });
  ::close(gate[0]);
  child.wait_for('D');
  hold(child, [&](Tasks& tasks) { EXPECT_FALSE(tasks.stop_all(Clock::now())); });
  EXPECT_FALSE(child.is_free()) << "the test is of a thread that could not be released";
  release_late();
  EXPECT_FALSE(child.is_free());
  ::close(gate[1]);
  child.wait_for('t');
  release_late();
  EXPECT_TRUE(child.is_free());
  child.wait_for('R');
}

// While it waits for a thread in vfork, memlog looks for threads that have ended. Those that have
// only stopped are not among them.
TEST(TasksTest, ThreadsThatStopWhileAnotherDoesNot) {
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const Child child([&] {
    ::close(gate[1]);
    std::thread(spin).detach();
    char byte;
    if (::vfork() == 0) ::_exit(static_cast<int>(::read(gate[0], &byte, 1)));
  });
  ::close(gate[0]);
  child.wait_for('D');
  const std::vector<pid_t> tids = all_tasks(child.pid());
  ASSERT_EQ(tids.size(), 2u);
  const pid_t other = tids[0] == child.pid() ? tids[1] : tids[0];
  hold(child, [&](Tasks& tasks) {
    EXPECT_FALSE(tasks.stop_all(Clock::now() + std::chrono::milliseconds(200)));
  });
  EXPECT_EQ(task_status(child.pid(), other, "TracerPid"), "0");
  EXPECT_EQ(task_state(child.pid(), other), 'R');
  ::close(gate[1]);
  while (!child.is_free()) release_late();
}

// The exec waits until the tracer has waited for the thread that it ended, and the tracer for the
// exec. memlog run blocks every signal.
TEST(TasksTest, ExecWhileMemlogBeginsToTrace) {
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const Child child([&] {
    ::close(gate[1]);
    std::thread(spin).detach();
    char byte;
    (void)!::read(gate[0], &byte, 1);
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
  });
  ::close(gate[0]);
  std::vector<pid_t> tids;
  while (tids.size() != 2) tids = all_tasks(child.pid());
  const pid_t other = tids[0] == child.pid() ? tids[1] : tids[0];
  sigset_t all;
  sigset_t mask;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &mask);
  {
    Seizing seizing([&] { ::waitpid(other, nullptr, __WALL | WNOHANG); });
    ASSERT_EQ(seizing.seize(other, 0), 0);
    ::close(gate[1]);
    child.wait_for('D');
    EXPECT_EQ(seizing.seize(child.pid(), 0), 0);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, child.pid(), nullptr, nullptr), 0);
}

}  // namespace
}  // namespace mtrace::process
