// held_list BLOCKS [shared]: a list that a block holds which was allocated before mtrace_start(),
// or a page that is shared, without a name, and made read-only in the end. Nothing is lost. Waits
// for input.
#include <sys/mman.h>

#include "mtrace.h"
#include "truth.h"

struct node {
  struct node* next;
  char rest[192];
};
static struct node** head;

SITE static void site_node(void) {
  struct node* node = malloc(sizeof *node);
  memset(node, 0, sizeof *node);
  node->next = *head;
  *head = node;
  NO_TAIL;
}

int main(int argc, char** argv) {
  char byte;
  const int shared = argc > 2;
  head = shared ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                : malloc(sizeof *head);
  *head = NULL;
  mtrace_start();
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; --i) site_node();
  if (shared) check(mprotect(head, 4096, PROT_READ) == 0, "mprotect");
  puts("ready");
  fflush(stdout);
  return read(0, &byte, 1) < 0;
}
