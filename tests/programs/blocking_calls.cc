// Each of some fifty blocking system calls in a thread of its own: those with a time limit, which
// end by it, and those that wait until main() brings about what they wait for. In the end it says
// of each what it returned (or minus errno), and for limited ones how long it took, in limits.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

constexpr long kLimit = 900;  // milliseconds
constexpr long kHour = 3'600'000;

void need(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(2);
}

timespec time_of(long milliseconds) {
  return {milliseconds / 1000, milliseconds % 1000 * 1'000'000};
}
timespec later(clockid_t clock, long milliseconds) {
  timespec time;
  clock_gettime(clock, &time);
  time.tv_nsec += milliseconds % 1000 * 1'000'000;
  time.tv_sec += milliseconds / 1000 + time.tv_nsec / 1'000'000'000;
  time.tv_nsec %= 1'000'000'000;
  return time;
}
double seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}
// What the calls below are given stays as long as the program.
timespec* in(long milliseconds) { return new timespec(time_of(milliseconds)); }
sigset_t* only(int signal) {
  auto* const set = new sigset_t;
  sigemptyset(set);
  sigaddset(set, signal);
  return set;
}
pollfd* readable(int descriptor) { return new pollfd{descriptor, POLLIN, 0}; }
sembuf* change(short by) { return new sembuf{0, by, 0}; }
char byte;
iovec* one_byte() { return new iovec{&byte, 1}; }
mmsghdr* message(iovec* bytes) {
  auto* const made = new mmsghdr{};
  made->msg_hdr.msg_iov = bytes;
  made->msg_hdr.msg_iovlen = bytes != nullptr;
  return made;
}
// Where the kernel cannot write what is left.
const timespec* read_only(long milliseconds) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(page != MAP_FAILED, "mmap");
  const timespec time = time_of(milliseconds);
  memcpy(page, &time, sizeof time);
  mprotect(page, 4096, PROT_READ);
  return static_cast<timespec*>(page);
}

// ---- What there is to wait for.

struct Ends {
  int ours;
  int its;  // on which the thread waits
};
Ends stream() {
  int ends[2];
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  return {ends[0], ends[1]};
}
int limited(int socket, int option, long milliseconds) {
  const timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};
  need(setsockopt(socket, SOL_SOCKET, option, &time, sizeof time) == 0, "setsockopt");
  return socket;
}
int full(int socket) {
  static char bytes[4096];
  while (send(socket, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
  return socket;
}
sockaddr_in loopback() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
int listener(sockaddr_in* address, int backlog) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  *address = loopback();
  socklen_t size = sizeof *address;
  need(bind(socket, reinterpret_cast<sockaddr*>(address), size) == 0, "bind");
  need(listen(socket, backlog) == 0, "listen");
  getsockname(socket, reinterpret_cast<sockaddr*>(address), &size);
  return socket;
}
// Nobody takes a connection there any more.
sockaddr_in busy_listener() {
  sockaddr_in address;
  listener(&address, 0);
  for (int i = 0; i < 3; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  return address;
}
sockaddr_un unix_address() {
  static int number = 0;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "blocking_calls-%d-%d", getpid(),
           ++number);
  return address;
}
int unix_listener(const sockaddr_un& address, int backlog) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  need(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
  need(listen(socket, backlog) == 0, "listen");
  return socket;
}
int epoll_of(int descriptor) {
  const int set = epoll_create1(0);
  epoll_event event = {EPOLLIN, {}};
  need(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
  return set;
}
int semaphores() {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  need(set >= 0, "semget");
  return set;
}
aio_context_t aio() {
  aio_context_t context = 0;
  need(syscall(SYS_io_setup, 4, &context) == 0, "io_setup");
  return context;
}
// A poll of the descriptor, which is an event of the context when there is something to read.
aio_context_t aio_of(int descriptor) {
  const aio_context_t context = aio();
  iocb block = {};
  block.aio_fildes = static_cast<uint32_t>(descriptor);
  block.aio_lio_opcode = IOCB_CMD_POLL;
  block.aio_buf = POLLIN;
  iocb* blocks[] = {&block};
  need(syscall(SYS_io_submit, context, 1, blocks) == 1, "io_submit");
  return context;
}

// The registers that a system call preserves, of a call that is not libc's.
long raw_epoll_wait(int set, epoll_event* event, long limit) {
  long result = SYS_epoll_wait;
  register long r10 asm("r10") = limit;
  register long r8 asm("r8") = 0x8888;
  register long r9 asm("r9") = 0x9999;
  long rdx = 1;
  long flags = 0;
  asm volatile(
      "cmp $1, %%r8\n\t"
      "stc\n\t"
      "syscall\n\t"
      "setc %%cl\n\t"
      "movzbl %%cl, %%ecx\n\t"
      : "+a"(result), "+d"(rdx), "+r"(r10), "+r"(r8), "+r"(r9), "=c"(flags)
      : "D"(set), "S"(event)
      : "r11", "memory", "cc");
  const bool kept = r10 == limit && r8 == 0x8888 && r9 == 0x9999 && rdx == 1 && flags == 1;
  return kept ? result : -9999;
}

long uring_of(int* descriptor) {
  io_uring_params parameters = {};
  *descriptor = static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters));
  return *descriptor;
}
long uring_wait(int descriptor, long limit) {
  io_uring_getevents_arg argument = {};
  argument.ts = reinterpret_cast<uint64_t>(in(limit));
  return syscall(SYS_io_uring_enter, descriptor, 0, 1,
                 IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
}

// ---- The calls.

struct Case {
  std::string name;
  bool is_limited;
  std::function<long()> wait;     // in the thread; -1 with errno
  std::function<void()> happens;  // in main
  long result = 0;
  double limits = 0;
  pthread_t thread = {};
};
std::vector<Case> cases;

void by_time(const char* name, std::function<long()> wait) {
  cases.push_back({name, true, std::move(wait), {}});
}
struct Event {
  Case& one;
  void when(std::function<void()> happens) const { one.happens = std::move(happens); }
};
Event by_event(const char* name, std::function<long()> wait) {
  cases.push_back({name, false, std::move(wait), {}});
  return {cases.back()};
}

epoll_event event;
io_event found;

void limited_calls() {
  const int quiet = stream().its;
  const int set = epoll_of(quiet);
  by_time("epoll_wait", [=] { return epoll_wait(set, &event, 1, kLimit); });
  by_time("epoll_wait-raw", [=] { return raw_epoll_wait(set, &event, kLimit); });
  by_time("epoll_pwait", [=] { return epoll_pwait(set, &event, 1, kLimit, only(SIGUSR2)); });
  by_time("epoll_pwait2",
          [=] { return syscall(SYS_epoll_pwait2, set, &event, 1, in(kLimit), nullptr, 0); });
  by_time("poll", [=] { return poll(readable(quiet), 1, kLimit); });
  by_time("ppoll", [=] { return ppoll(readable(quiet), 1, in(kLimit), nullptr); });
  by_time("ppoll-read-only",
          [=] { return syscall(SYS_ppoll, readable(quiet), 1, read_only(kLimit), nullptr, 8); });
  by_time("select", [=] {
    timeval time = {kLimit / 1000, kLimit % 1000 * 1000};
    return select(0, nullptr, nullptr, nullptr, &time);
  });
  by_time("pselect-read-only", [=] {
    return syscall(SYS_pselect6, 0, nullptr, nullptr, nullptr, read_only(kLimit), nullptr);
  });
  by_time("nanosleep", [] { return nanosleep(in(kLimit), nullptr); });
  by_time("clock_nanosleep", [] {
    const timespec time = later(CLOCK_MONOTONIC, kLimit);
    return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
  });

  const auto silent = [](long limit) { return limited(stream().its, SO_RCVTIMEO, limit); };
  by_time("recv", [=, s = silent(kLimit)] { return recv(s, &byte, 1, 0); });
  by_time("recv-all", [=, s = silent(kLimit)] { return recv(s, &byte, 1, MSG_WAITALL); });
  by_time("read", [=, s = silent(kLimit)] { return read(s, &byte, 1); });
  by_time("readv", [=, s = silent(kLimit)] { return readv(s, one_byte(), 1); });
  by_time("recvmsg", [=, s = silent(kLimit)] { return recvmsg(s, &message(nullptr)->msg_hdr, 0); });
  by_time("recvmmsg",
          [=, s = silent(kLimit)] { return recvmmsg(s, message(nullptr), 1, 0, nullptr); });
  by_time("recvfrom-udp", [] {
    const int s = limited(socket(AF_INET, SOCK_DGRAM, 0), SO_RCVTIMEO, kLimit);
    sockaddr_in address = loopback();
    need(bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
    return recvfrom(s, &byte, 1, 0, nullptr, nullptr);
  });
  by_time("accept", [] {
    sockaddr_in address;
    return accept(limited(listener(&address, 1), SO_RCVTIMEO, kLimit), nullptr, nullptr);
  });
  by_time("accept4-unix", [] {
    const int s = limited(unix_listener(unix_address(), 1), SO_RCVTIMEO, kLimit);
    return accept4(s, nullptr, nullptr, 0);
  });

  const auto blocked = [](long limit) { return limited(full(stream().its), SO_SNDTIMEO, limit); };
  by_time("send", [=, s = blocked(kLimit)] { return send(s, &byte, 1, 0); });
  by_time("write", [=, s = blocked(kLimit)] { return write(s, &byte, 1); });
  by_time("writev", [=, s = blocked(kLimit)] { return writev(s, one_byte(), 1); });
  by_time("sendmsg",
          [=, s = blocked(kLimit)] { return sendmsg(s, &message(one_byte())->msg_hdr, 0); });
  by_time("sendmmsg", [=, s = blocked(kLimit)] { return sendmmsg(s, message(one_byte()), 1, 0); });
  by_time("connect", [] {
    const sockaddr_in address = busy_listener();
    const int s = limited(socket(AF_INET, SOCK_STREAM, 0), SO_SNDTIMEO, kLimit);
    return connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  });
  by_time("connect-unix", [] {
    const sockaddr_un address = unix_address();
    unix_listener(address, 0);
    const auto call = [&] {
      const int s = limited(socket(AF_UNIX, SOCK_STREAM, 0), SO_SNDTIMEO, kLimit);
      return connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    };
    call();
    return call();
  });

  by_time("sigtimedwait", [] { return sigtimedwait(only(SIGRTMIN), nullptr, in(kLimit)); });
  by_time("semtimedop", [] { return semtimedop(semaphores(), change(-1), 1, in(kLimit)); });
  by_time("io_getevents",
          [] { return syscall(SYS_io_getevents, aio(), 1, 1, &found, in(kLimit)); });
  by_time("io_pgetevents",
          [] { return syscall(SYS_io_pgetevents, aio(), 1, 1, &found, in(kLimit), nullptr); });
  by_time("futex", [] {
    static int word;
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, in(kLimit), nullptr, 0);
  });
  by_time("sem_timedwait", [] {
    static sem_t semaphore;
    const timespec time = later(CLOCK_REALTIME, kLimit);
    return sem_timedwait(&semaphore, &time);
  });
  by_time("pthread_cond_timedwait", [] {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    const timespec time = later(CLOCK_REALTIME, kLimit);
    return -pthread_cond_timedwait(&condition, &mutex, &time);
  });
  by_time("mq_timedreceive", [] {
    const std::string name = "/blocking_calls-" + std::to_string(getpid());
    mq_attr attributes = {};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = 8;
    const mqd_t queue = mq_open(name.c_str(), O_RDWR | O_CREAT, 0600, &attributes);
    need(queue >= 0, "mq_open");
    mq_unlink(name.c_str());
    char message[8];
    const timespec time = later(CLOCK_REALTIME, kLimit);
    return mq_timedreceive(queue, message, sizeof message, nullptr, &time);
  });
}

// Also with limits that are not reached.
void ended_calls() {
  const auto when_readable = [](const char* name, std::function<long(int)> wait) {
    const Ends ends = stream();
    by_event(name, [=] { return wait(ends.its); }).when([=] {
      need(write(ends.ours, "x", 1) == 1, "write");
    });
  };
  when_readable("epoll_wait-forever", [](int s) { return epoll_wait(epoll_of(s), &event, 1, -1); });
  when_readable("epoll_wait-hour", [](int s) { return epoll_wait(epoll_of(s), &event, 1, kHour); });
  when_readable("poll-hour", [](int s) { return poll(readable(s), 1, kHour); });
  when_readable("recv-hour",
                [](int s) { return recv(limited(s, SO_RCVTIMEO, kHour), &byte, 1, 0); });
  when_readable("recv-forever", [](int s) { return recv(s, &byte, 1, 0); });
  when_readable("io_getevents-forever",
                [](int s) { return syscall(SYS_io_getevents, aio_of(s), 1, 1, &found, nullptr); });
  when_readable("io_getevents-hour", [](int s) {
    return syscall(SYS_io_getevents, aio_of(s), 1, 1, &found, in(kHour));
  });
  const auto writable = [](const char* name, std::function<long(int)> wait) {
    const Ends ends = stream();
    full(ends.its);
    by_event(name, [=] { return wait(ends.its); }).when([=] {
      static char bytes[1 << 20];
      while (recv(ends.ours, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
      }
    });
  };
  writable("send-hour", [](int s) { return send(limited(s, SO_SNDTIMEO, kHour), &byte, 1, 0); });
  writable("send-forever", [](int s) { return send(s, &byte, 1, 0); });

  static sockaddr_in address;
  const int server = limited(listener(&address, 1), SO_RCVTIMEO, kHour);
  by_event("accept-hour", [=] { return accept(server, nullptr, nullptr) >= 0 ? 1 : -1; }).when([] {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(s, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
  });

  static int set = semaphores();
  static int other_set = semaphores();
  const auto up = [](int semaphore) { need(semop(semaphore, change(1), 1) == 0, "semop"); };
  by_event("semop", [] { return semop(set, change(-1), 1); }).when([=] { up(set); });
  by_event("semtimedop-hour", [] {
    return semtimedop(other_set, change(-1), 1, in(kHour));
  }).when([=] { up(other_set); });

  const auto send_signal = [](int number) { return [=] { kill(getpid(), SIGRTMIN + number); }; };
  by_event("sigwaitinfo", [] {
    return sigwaitinfo(only(SIGRTMIN + 1), nullptr) - SIGRTMIN;
  }).when(send_signal(1));
  by_event("sigtimedwait-hour", [] {
    return sigtimedwait(only(SIGRTMIN + 2), nullptr, in(kHour)) - SIGRTMIN;
  }).when(send_signal(2));

  static int pipe_ends[2];
  need(pipe(pipe_ends) == 0, "pipe");
  by_event("read-pipe", [] { return read(pipe_ends[0], &byte, 1); }).when([] {
    need(write(pipe_ends[1], "x", 1) == 1, "write");
  });
  static int counter = eventfd(0, 0);
  by_event("read-eventfd", [] {
    uint64_t value;
    return read(counter, &value, sizeof value);
  }).when([] { eventfd_write(counter, 1); });
  static int messages = msgget(IPC_PRIVATE, 0600);
  struct Message {
    long type;
    char text[8];
  };
  by_event("msgrcv", [] {
    Message message;
    return msgrcv(messages, &message, sizeof message.text, 0, 0);
  }).when([] {
    const Message message = {1, ""};
    need(msgsnd(messages, &message, 1, 0) == 0, "msgsnd");
  });
  static int life[2];
  need(pipe(life) == 0, "pipe");
  static pid_t child = fork();
  if (child == 0) {
    close(life[1]);
    _exit(read(life[0], &byte, 1) == 0 ? 7 : 8);
  }
  by_event("waitpid", [] {
    int status = 0;
    return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1;
  }).when([] { close(life[1]); });
  static sem_t semaphore;
  by_event("sem_wait", [] { return sem_wait(&semaphore); }).when([] { sem_post(&semaphore); });
  // A handler ends these, with the memory of a stop or without.
  by_event("epoll_wait-handler", [s = stream().its] {
    pthread_sigmask(SIG_UNBLOCK, only(SIGRTMIN + 3), nullptr);
    return epoll_wait(epoll_of(s), &event, 1, kHour);
  }).when(send_signal(3));
  by_event("recv-handler", [s = stream().its] {
    pthread_sigmask(SIG_UNBLOCK, only(SIGRTMIN + 4), nullptr);
    return recv(limited(s, SO_RCVTIMEO, kHour), &byte, 1, 0);
  }).when(send_signal(4));
  by_event("sigsuspend-handler", [] {
    sigset_t all_but;
    sigfillset(&all_but);
    sigdelset(&all_but, SIGRTMIN + 5);
    return sigsuspend(&all_but);
  }).when(send_signal(5));
}

// The pthread_cancel of a thread in a call that goes on.
struct Undo {
  long* result;
  ~Undo() { *result = 77; }
};
void cancelled_call() {
  static Case* me;
  by_event("epoll_wait-cancelled", [s = stream().its] {
    const Undo undo = {&me->result};
    return epoll_wait(epoll_of(s), &event, 1, kHour);
  }).when([] { pthread_cancel(me->thread); });
  me = nullptr;
  for (Case& one : cases) me = &one;
}

void uring_calls() {
  int limited_one;
  int ended_one;
  if (uring_of(&limited_one) < 0 || uring_of(&ended_one) < 0) return;
  by_time("io_uring_enter", [=] { return uring_wait(limited_one, kLimit); });
}

void handle(int) {}

}  // namespace

int main(int, char** argv) {
  // Signals go to the threads that wait for them.
  sigset_t real_time;
  sigemptyset(&real_time);
  for (int i = 0; i < 6; ++i) sigaddset(&real_time, SIGRTMIN + i);
  sigprocmask(SIG_BLOCK, &real_time, nullptr);
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (int i = 3; i < 6; ++i) sigaction(SIGRTMIN + i, &action, nullptr);
  cases.reserve(100);
  limited_calls();
  uring_calls();
  ended_calls();
  cancelled_call();
  for (Case& one : cases) {
    const auto begin = [](void* argument) -> void* {
      Case& mine = *static_cast<Case*>(argument);
      const double started = seconds();
      errno = 0;
      const long result = mine.wait();
      mine.limits = (seconds() - started) * 1000 / kLimit;
      mine.result = result == -1 && errno != 0 ? -errno : result;
      return nullptr;
    };
    need(pthread_create(&one.thread, nullptr, begin, &one) == 0, "pthread_create");
  }
  // With a plug-in whose constructor waits for a byte, memlog finds no safe point.
  std::thread loader([=] { need(argv[1] == nullptr || dlopen(argv[1], RTLD_NOW), "dlopen"); });
  if (argv[1] == nullptr) puts("ready");  // otherwise the plug-in says it
  fflush(stdout);
  for (Case& one : cases) {
    if (one.is_limited) pthread_join(one.thread, nullptr);
  }
  print("over");
  loader.join();
  need(read(0, &byte, 1) == 1, "read");
  for (Case& one : cases) {
    if (one.happens) one.happens();
  }
  for (Case& one : cases) {
    if (!one.is_limited) pthread_join(one.thread, nullptr);
    printf("%s %ld %.3f\n", one.name.c_str(), one.result, one.is_limited ? one.limits : 0);
  }
  return 0;
}
