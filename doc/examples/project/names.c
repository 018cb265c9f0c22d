/* Copies a name. With the argument "leak" it forgets to free the copy. */
#include <mtrace.h>
#include <stdlib.h>
#include <string.h>

static char* copy_name(const char* name) { return strdup(name); }

int main(int argc, char** argv) {
  char* name = copy_name("Grace Hopper");
  mtrace_note("name of %zu bytes", strlen(name)); /* in the report, under libmtrace.so */
  if (argc < 2 || strcmp(argv[1], "leak") != 0) free(name);
  return 0;
}
