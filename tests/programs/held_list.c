// held_list BLOCKS [shared|file|write-only]: a list that a block holds which was allocated before
// mtrace_start(), or a page: shared and without a name, or private and of a file, both made
// read-only in the end; or one that may only be written in the end. Nothing is lost. Waits for
// input.
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
  const char* const page = argc > 2 ? argv[2] : NULL;
  if (page == NULL) {
    head = malloc(sizeof *head);
  } else {
    const int file = strcmp(page, "file") == 0 ? open(argv[0], O_RDONLY) : -1;
    const int flags = strcmp(page, "shared") == 0 ? MAP_SHARED : MAP_PRIVATE;
    head = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    check(head != MAP_FAILED, "mmap");
  }
  *head = NULL;
  mtrace_start();
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; --i) site_node();
  const int access = page != NULL && strcmp(page, "write-only") == 0 ? PROT_WRITE : PROT_READ;
  if (page != NULL) check(mprotect(head, 4096, access) == 0, "mprotect");
  print("ready");
  return read(0, &byte, 1) < 0;
}
