// A small service for doc/queries.md: what each function does with memory is known.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mtrace.h"

enum { kRequests = 400, kItems = 500, kShelves = 40 };

struct session {
  char user[24];
  struct session* next;
};

struct item {
  struct item* next;
  char name[88];
};

static struct session* sessions;
static void* cache[64];
void* catalog[kShelves * 25];
static _Atomic(struct item*) queue;
static _Atomic int produced;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long* counters[2];
static pthread_barrier_t barrier;

__attribute__((noinline)) static void load_catalog(void) {
  for (int i = 0; i < kShelves * 25; ++i) catalog[i] = calloc(1, 120);
}

// Every tenth request leaves its session behind.
__attribute__((noinline)) static struct session* session_open(int number) {
  struct session* session = malloc(sizeof *session);
  snprintf(session->user, sizeof session->user, "user %d", number);
  session->next = NULL;
  return session;
}

__attribute__((noinline)) static void session_close(struct session* session, int number) {
  if (number % 10 != 0) {
    free(session);
    return;
  }
  pthread_mutex_lock(&lock);
  session->next = sessions;
  sessions = session;
  pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static size_t parse(int number) {
  char* copy = malloc(48);
  const int size = snprintf(copy, 48, "GET /shelf/%d", number % kShelves);
  free(copy);
  return (size_t)size;
}

// Grows a reply piece by piece.
__attribute__((noinline)) static char* reply(int number) {
  size_t size = 64;
  char* text = malloc(size);
  for (int piece = 0; piece < number % 5; ++piece) {
    size *= 2;
    text = realloc(text, size);
  }
  memset(text, 'x', size);
  return text;
}

__attribute__((noinline)) static void cache_put(int number) {
  pthread_mutex_lock(&lock);
  free(cache[number % 64]);
  cache[number % 64] = malloc(256 + (size_t)(number % 7) * 16);
  pthread_mutex_unlock(&lock);
}

static void handle(int number) {
  struct session* session = session_open(number);
  if (parse(number) > 40) abort();
  char* text = reply(number);
  if (number % 3 == 0) cache_put(number);
  free(text);
  session_close(session, number);
}

// Two workers count in blocks of their own that malloc puts side by side.
static void* work(void* which) {
  const int me = (int)(long)which;
  parse(me);  // the first block of a thread brings its cache, which would come between the two
  pthread_barrier_wait(&barrier);
  counters[me] = calloc(1, sizeof(long));
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < kRequests; ++i) {
    handle(i * 2 + me);
    ++*counters[me];
  }
  return NULL;
}

__attribute__((noinline)) static struct item* item_new(int number) {
  struct item* item = malloc(sizeof *item);
  snprintf(item->name, sizeof item->name, "item %d", number);
  return item;
}

static void* produce(void* unused) {
  for (int i = 0; i < kItems; ++i) {
    struct item* item = item_new(i);
    item->next = atomic_load(&queue);
    while (!atomic_compare_exchange_weak(&queue, &item->next, item)) {
    }
    atomic_fetch_add(&produced, 1);
  }
  return unused;
}

// Frees what the other thread allocates.
static void* consume(void* unused) {
  for (int taken = 0; taken < kItems;) {
    struct item* item = atomic_exchange(&queue, NULL);
    while (item != NULL) {
      struct item* next = item->next;
      free(item);
      item = next;
      ++taken;
    }
  }
  return unused;
}

static void phase(void* (*first)(void*), void* (*second)(void*)) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, first, (void*)0);
  pthread_create(&threads[1], NULL, second, (void*)1);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}

int main(void) {
  load_catalog();
  pthread_barrier_init(&barrier, NULL, 2);
  mtrace_report_label("started");
  mtrace_note("serving %d requests", 2 * kRequests);
  phase(work, work);
  mtrace_report_label("served");
  mtrace_note("moving %d items", kItems);
  phase(produce, consume);
  mtrace_report_label("moved");
  return sessions == NULL;
}
