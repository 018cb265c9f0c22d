/* Frees that the library cannot match: of memory that was allocated unseen, and twice. See
 * truth.h. */
#include "truth.h"

extern void* __libc_malloc(size_t);

static void* blocks[20];

SITE void site_allocates(int i, size_t size) {
  blocks[i] = malloc(sized(size));
  NO_TAIL;
}
SITE void site_unseen(int i) {
  blocks[i] = __libc_malloc(sized(100));
  NO_TAIL;
}
SITE void site_frees(int i) {
  free(blocks[i]);
  NO_TAIL;
}
SITE void site_frees_unknown(int i) {
  free(blocks[i]);
  NO_TAIL;
}
SITE void site_resizes_unknown(int i) {
  blocks[i] = realloc(blocks[i], sized(3000));
  NO_TAIL;
}
SITE void site_frees_first(int i) {
  free(blocks[i]);
  NO_TAIL;
}
SITE void site_frees_again(int i) {
  free(blocks[i]);
  NO_TAIL;
}

/* "attached": three blocks are there before a line is read, and are freed after it. */
static void wait_to_be_attached(void) {
  for (int i = 10; i < 13; ++i) site_allocates(i, 100);
  print("ready");
  getchar();
  for (int i = 10; i < 13; ++i) site_frees_unknown(i);
}

int main(int argc, char** argv) {
  const int attached = argc > 1 && strcmp(argv[1], "attached") == 0;
  if (attached) wait_to_be_attached();
  for (int i = 0; i < 4; ++i) site_allocates(i, 100);
  for (int i = 0; i < 4; ++i) site_frees(i);
  for (int i = 0; i < 3; ++i) {
    site_unseen(0);
    site_frees_unknown(0);
  }
  site_unseen(0);
  site_resizes_unknown(0);
  site_frees(0);
  if (argc > 1 && strcmp(argv[1], "twice") == 0) {
    site_allocates(3, 50000);
    site_allocates(5, 60000); /* in the way */
    site_frees_first(3);
    site_frees_again(3);
  }
  return 0;
}
