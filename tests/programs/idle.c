// Holds 5,000 bytes at site_idle, says "ready", and then waits in one system call, or works in
// malloc, until a byte comes on standard input. Says how often the call was interrupted.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include "truth.h"

static void* kept;
static int interrupted;
static volatile int stop;

SITE void site_idle(void) {
  kept = malloc(sized(5000));
  fill(kept, 5000);
  NO_TAIL;
}

static void* wait_for_input(void* mutex_and_condition) {
  char byte;
  if (read(0, &byte, 1) < 0) abort();
  stop = 1;
  if (mutex_and_condition != NULL) {
    void** both = mutex_and_condition;
    pthread_mutex_lock(both[0]);
    pthread_cond_signal(both[1]);
    pthread_mutex_unlock(both[0]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  void* both[2] = {&mutex, &condition};
  pthread_t reader;
  site_idle();
  char byte = 0;
  ssize_t size = -2;
  if (strcmp(mode, "condition") == 0) pthread_mutex_lock(&mutex);
  if (strcmp(mode, "condition") == 0 || strcmp(mode, "join") == 0) {
    pthread_create(&reader, NULL, wait_for_input, both);
  } else if (strcmp(mode, "malloc") == 0) {
    pthread_create(&reader, NULL, wait_for_input, NULL);
  }
  print("ready");
  if (strcmp(mode, "pause") == 0) {
    if (pause() != -1 || errno != EINTR) return 3;
    ++interrupted;
  } else if (strcmp(mode, "sleep") == 0) {
    const struct timespec long_time = {100000, 0};
    struct timespec rest;
    if (nanosleep(&long_time, &rest) != -1 || errno != EINTR) return 3;
    ++interrupted;
  } else if (strcmp(mode, "poll") == 0) {
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, -1) < 0 && errno == EINTR) ++interrupted;
  } else if (strcmp(mode, "select") == 0) {
    fd_set set;
    do {
      FD_ZERO(&set);
      FD_SET(0, &set);
    } while (select(1, &set, NULL, NULL, NULL) < 0 && errno == EINTR && ++interrupted > 0);
  } else if (strcmp(mode, "epoll") == 0) {
    const int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
    while (epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR) ++interrupted;
  } else if (strcmp(mode, "condition") == 0) {
    while (!stop) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(reader, NULL);
    size = 1;
  } else if (strcmp(mode, "join") == 0) {
    pthread_join(reader, NULL);
    size = 1;
  } else if (strcmp(mode, "malloc") == 0) {
    void* blocks[64] = {NULL};
    for (unsigned i = 0; !stop; ++i) {
      free(blocks[i % 64]);
      blocks[i % 64] = malloc(sized(1 + i % 5000));
    }
    for (int i = 0; i < 64; ++i) free(blocks[i]);
    pthread_join(reader, NULL);
    size = 1;
  } else if (strcmp(mode, "read") != 0) {
    return 2;
  }
  if (size == -2) size = read(0, &byte, 1);
  printf("read %zd interrupted %d\n", size, interrupted);
  return 0;
}
