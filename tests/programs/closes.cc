// A thread that closes descriptors all the time and sees at once whether they are closed: the other
// end of a socket finds nobody there. Meanwhile the first thread asks for reports. A server that
// closes a socket counts on epoll(7) to forget it, and on the peer to see its end.
// Ends with status 5; prints how often a descriptor was still open.
#include <sys/socket.h>

#include "truth.h"

namespace {

volatile int done;
int held;
int closed;

void* close_sockets(void*) {
  constexpr int kHigh = 200;  // of a server with many connections
  while (!done) {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    const int here = fcntl(ends[0], F_DUPFD, kHigh);
    close(ends[0]);
    close(here);
    if (send(ends[1], "x", 1, MSG_NOSIGNAL) == 1) __atomic_fetch_add(&held, 1, __ATOMIC_RELAXED);
    close(ends[1]);
    __atomic_fetch_add(&closed, 1, __ATOMIC_RELAXED);
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pthread_t threads[4];
  for (pthread_t& thread : threads) {
    check(pthread_create(&thread, nullptr, close_sockets, nullptr) == 0, "thread");
  }
  for (int i = 0; i < atoi(argv[1]); ++i) {
    void* volatile block = malloc(sized(100));  // kept: a report without entries starts no tool
    (void)block;
    if (getenv("LD_PRELOAD") != nullptr) raise(SIGUSR1);
    usleep(2000);
  }
  done = 1;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  check(closed > 0, "closed some");
  printf("%d held\n", held);
  return 5;
}
