// app.c: a small service. It answers 1,000 requests a second, for as many seconds as its argument
// says (1). Its sessions are never closed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
  char user[56];
  struct session* next;
};

static struct session* sessions;
static char* cache[64];

static void session_open(int id) {
  struct session* session = malloc(sizeof *session);
  snprintf(session->user, sizeof session->user, "user-%d", id);
  session->next = sessions;
  sessions = session;
}

static void cache_put(int id, const char* answer) {
  free(cache[id % 64]);
  cache[id % 64] = strdup(answer);
}

static void handle(int id) {
  char* answer = malloc(16384);
  snprintf(answer, 16384, "the answer to request %d", id);
  if (id % 10 == 0) session_open(id);
  cache_put(id, answer);
  free(answer);
}

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? atoi(argv[1]) : 1;
  for (int second = 0; second < seconds; ++second) {
    if (second > 0) sleep(1);
    for (int id = 0; id < 1000; ++id) handle(id);
    puts("1,000 requests answered");
    fflush(stdout);
  }
}
