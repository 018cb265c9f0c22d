// long_list N [ignore]: makes a list of N nodes of 48 bytes in no order of addresses, so that
// following it takes long, prints "ready", waits for a line, and ends with status 7. With "ignore"
// it ignores SIGINT and SIGTERM.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct Node {
  struct Node* next;
  char rest[40];
};

static struct Node* list;

int main(int argc, char** argv) {
  const size_t count = (size_t)atol(argv[1]);
  if (argc > 2) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
  }
  struct Node** nodes = malloc(count * sizeof nodes[0]);
  for (size_t i = 0; i < count; ++i) nodes[i] = malloc(sizeof(struct Node));
  uint64_t random = 88172645463325252;
  for (size_t i = count - 1; i > 0; --i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const size_t other = random % (i + 1);
    struct Node* one = nodes[i];
    nodes[i] = nodes[other];
    nodes[other] = one;
  }
  for (size_t i = 0; i < count; ++i) {
    nodes[i]->next = list;
    list = nodes[i];
  }
  free(nodes);
  puts("ready");
  fflush(stdout);
  (void)getchar();
  return 7;
}
