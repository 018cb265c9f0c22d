/* Two threads, each with an arena of its own, that decode a tree and free most of it: of every
 * hundred blocks (argument 1; 0: of all) they keep one. The threads live on until the exit. With
 * argument 2, waits before that for its input to end. */
#include "truth.h"

enum { kBlocks = 348000, kThreads = 2 };

struct node {
  struct node* left;
  struct node* right;
  char text[80];
};

static struct node* all[kThreads][kBlocks];
static int every;
static pthread_barrier_t step;

__attribute__((noipa)) static struct node* decode(struct node** nodes, int count) {
  if (count == 0) return NULL;
  struct node* const node = malloc(sizeof *node);
  if (node == NULL) abort();
  memset(node->text, 1, sizeof node->text);
  nodes[0] = node;
  const int half = (count - 1) / 2;
  node->left = decode(nodes + 1, half);
  node->right = decode(nodes + 1 + half, count - 1 - half);
  return node;
}

static void* work(void* argument) {
  struct node** const mine = argument;
  free(malloc(1)); /* an arena is a thread's from its first allocation on */
  pthread_barrier_wait(&step);
  decode(mine, kBlocks);
  /* From the end, so that the last blocks are in the thread's cache and hold the end of the heap.
   */
  for (int i = kBlocks; i-- > 0;) {
    if (every == 0 || i % every != 0) free(mine[i]);
  }
  pthread_barrier_wait(&step);
  for (;;) pause();
  return NULL;
}

int main(int argc, char** argv) {
  every = argc > 1 ? atoi(argv[1]) : 100;
  pthread_barrier_init(&step, NULL, kThreads + 1);
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, all[i]) != 0) return 1;
  }
  pthread_barrier_wait(&step);
  pthread_barrier_wait(&step);
  if (argc < 3) return 0;
  if (write(1, "ready\n", 6) != 6) return 1;
  await_end();
  return 0;
}
