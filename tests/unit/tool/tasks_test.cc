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
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "process/inspect/process.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/safe_point.h"

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

// Functions of a stack, each in a section of its own, whose bounds the linker tells.
#define WALKED(name)                    \
  extern "C" const char __start_##name; \
  extern "C" const char __stop_##name;  \
  [[gnu::noinline, gnu::used, gnu::section(#name)]]
const SharedFlag* waits_in_handler;
WALKED(walked_handler) void handle(int) {
  waits_in_handler->set();
  for (;;) ::pause();
}
WALKED(walked_comparison) int compare(const void*, const void*) { return ::raise(SIGUSR1); }
WALKED(walked_caller) void sort_two() {
  int two[] = {2, 1};
  ::qsort(two, 2, sizeof two[0], compare);
  asm volatile("" ::"r"(two) : "memory");
}
WALKED(walked_bystander) void stand_by() { asm volatile(""); }

// From a handler on a stack of its own through libc to the program.
TEST(SafePointTest, EachFrameIsFound) {
  const SharedFlag waits;
  waits_in_handler = &waits;
  const Child child([] {
    static char memory[64 << 10];
    const stack_t stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = sizeof memory};
    ::sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    ::sigaction(SIGUSR1, &action, nullptr);
    sort_two();
    stand_by();
  });
  waits.wait();
  const auto inside = [&](const char& begin, const char& end) {
    const Range function = {reinterpret_cast<uint64_t>(&begin), reinterpret_cast<uint64_t>(&end)};
    std::vector<Object> objects = process_image(child.pid()).objects;
    for (Object& object : objects) {
      object.care = Care::kFunctions;
      object.guarded.clear();
      if (object.holds(function.begin)) object.guarded = {{function, "f"}};
    }
    const TargetMemory memory(child.pid());
    Restarts restarts(child.pid(), memory, {});
    SafePoints points(memory, objects, restarts);
    Tasks tasks(child.pid(), restarts);
    EXPECT_TRUE(tasks.stop_all(Clock::now() + kLong));
    return points.inside(child.pid()).value_or("nothing").substr(0, 5);
  };
  EXPECT_EQ(inside(__start_walked_handler, __stop_walked_handler), "f of ");
  EXPECT_EQ(inside(__start_walked_comparison, __stop_walked_comparison), "f of ");
  EXPECT_EQ(inside(__start_walked_caller, __stop_walked_caller), "f of ");
  EXPECT_EQ(inside(__start_walked_bystander, __stop_walked_bystander), "nothi");
}

}  // namespace
}  // namespace mtrace::process
