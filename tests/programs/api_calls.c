/* Every function of mtrace.h with a known answer, and every way to use it badly. Says "wrong: ..."
 * and ends with 99 at the first answer that is another one. With the argument "absent": without
 * the library, where each must return 0. */
#include <stdbool.h>

#include "mtrace.h"
#include "truth.h"

#define EXPECT(condition) check((condition), #condition)

static void* kept[4];

SITE void site_texture(uint64_t id, int64_t size) {
  EXPECT(mtrace_record("texture", id, size) == 0);
  NO_TAIL;
}
SITE int site_backtrace(int fd) { return mtrace_backtrace(fd); }
SITE void site_kept(int i, size_t size) {
  kept[i] = malloc(sized(size));
  NO_TAIL;
}

static void absent(void) {
  EXPECT(mtrace_report() == 0 && mtrace_report_label("x") == 0);
  EXPECT(mtrace_live_bytes() == 0 && mtrace_live_blocks() == 0 && mtrace_peak_bytes() == 0);
  struct mtrace_usage_totals usage = {1, 1, 1};
  EXPECT(mtrace_usage(&usage) == 0 && usage.requested + usage.usable + usage.blocks == 0);
  EXPECT(mtrace_usage(NULL) == -1);
  EXPECT(mtrace_start() == 0 && mtrace_stop() == 0);
  EXPECT(mtrace_note("%d", 1) == 0 && mtrace_note_text("x", 0) == 0);
  EXPECT(mtrace_save("a") == 0 && mtrace_update("a") == 0 && mtrace_compare("a") == 0);
  EXPECT(mtrace_check("a") == 0);
  mtrace_assert("a");
  EXPECT(mtrace_savepoint_new() == 0 && mtrace_savepoint_label(1, "x") == 0);
  EXPECT(mtrace_savepoint_update(1) == 0 && mtrace_savepoint_compare(1) == 0);
  EXPECT(mtrace_savepoint_check(1) == 0 && mtrace_savepoint_free(1) == 0);
  EXPECT(mtrace_savepoint_explain(1, 1) == 0);
  mtrace_savepoint_assert(1);
  EXPECT(mtrace_record("a", 1, 1) == 0 && mtrace_release("a", 1) == 0);
  EXPECT(mtrace_backtrace(1) == 0);
}

static void totals(void) {
  const size_t bytes = mtrace_live_bytes();
  const size_t blocks = mtrace_live_blocks();
  site_kept(0, 1000000);
  EXPECT(mtrace_live_bytes() == bytes + 1000000);
  EXPECT(mtrace_live_blocks() == blocks + 1);
  EXPECT(mtrace_peak_bytes() >= bytes + 1000000);
  free(kept[0]);
  EXPECT(mtrace_live_bytes() == bytes && mtrace_live_blocks() == blocks);
  EXPECT(mtrace_peak_bytes() >= bytes + 1000000);
}

static void recording(void) {
  const size_t bytes = mtrace_live_bytes();
  site_kept(0, 300);
  EXPECT(mtrace_start() == 1);
  EXPECT(mtrace_stop() == 1);
  EXPECT(mtrace_stop() == 0);
  site_kept(1, 5000);
  EXPECT(mtrace_live_bytes() == bytes + 300);
  free(kept[0]); /* frees are always recorded */
  EXPECT(mtrace_live_bytes() == bytes);
  EXPECT(mtrace_start() == 0);
  free(kept[1]); /* and this one was never known */
  EXPECT(mtrace_live_bytes() == bytes);
}

static void savepoints(void) {
  char longest[64];
  char too_long[65];
  memset(longest, 'n', sizeof longest);
  memset(too_long, 'n', sizeof too_long);
  longest[63] = too_long[64] = '\0';

  EXPECT(mtrace_update("phase") == -1 && mtrace_compare("phase") == 0); /* savepoint 2 */
  EXPECT(mtrace_check("phase") == 0);                                   /* savepoint 3 */
  EXPECT(mtrace_save("phase") == 0 && mtrace_save(longest) == 0);
  EXPECT(mtrace_compare("phase") == 0);
  site_kept(0, 400);
  EXPECT(mtrace_compare("phase") == 400 && mtrace_compare(longest) == 400);
  EXPECT(mtrace_update("phase") == 0);
  EXPECT(mtrace_compare("phase") == 0 && mtrace_compare(longest) == 400);
  free(kept[0]);
  EXPECT(mtrace_compare("phase") == -400 && mtrace_compare(longest) == 0);
  EXPECT(mtrace_check("phase") == 0);
  mtrace_assert("phase");
  EXPECT(mtrace_save("phase") == 0 && mtrace_compare("phase") == 0);
  EXPECT(mtrace_save(too_long) == -1 && mtrace_save("") == -1 && mtrace_save(NULL) == -1);
  EXPECT(mtrace_compare(NULL) == 0); /* name 4 */

  mtrace_savepoint one = mtrace_savepoint_new();
  EXPECT(one != 0);
  site_kept(0, 70);
  EXPECT(mtrace_savepoint_compare(one) == 70 && mtrace_savepoint_update(one) == 0);
  EXPECT(mtrace_savepoint_compare(one) == 0 && mtrace_savepoint_check(one) == 0);
  EXPECT(mtrace_savepoint_label(one, too_long) == 0 &&
         mtrace_savepoint_label(one, NULL) == -1); /* name 5 */
  EXPECT(mtrace_savepoint_explain(one, -1) == -1);
  EXPECT(mtrace_savepoint_free(one) == 0 && mtrace_savepoint_free(one) == -1); /* savepoint 4 */
  mtrace_savepoint other = mtrace_savepoint_new();
  EXPECT(other != 0 && other != one && mtrace_savepoint_update(one) == -1); /* savepoint 5 */
  EXPECT(mtrace_savepoint_compare(0) == 0 && mtrace_savepoint_free(~(uint64_t)0) == -1); /* 7 */
  EXPECT(mtrace_savepoint_explain(other + 1, 1) == -1);                                  /* 8 */
  mtrace_savepoint many[61];
  for (int i = 0; i < 61; ++i) EXPECT((many[i] = mtrace_savepoint_new()) != 0);
  EXPECT(mtrace_savepoint_new() == 0 && mtrace_save("one more") == -1); /* savepoints 2 */
  EXPECT(mtrace_save("phase") == 0); /* there is one of that name */
  for (int i = 0; i < 61; ++i) EXPECT(mtrace_savepoint_free(many[i]) == 0);
  EXPECT(mtrace_savepoint_free(other) == 0);
  free(kept[0]);
}

static void resources(void) {
  const size_t heap = mtrace_live_bytes();
  for (uint64_t i = 0; i < 10; ++i) site_texture(i, 1000);
  EXPECT(mtrace_live_bytes() == heap);
  EXPECT(mtrace_release("texture", 3) == 0);
  EXPECT(mtrace_release("texture", 3) == -1); /* release 1 */
  EXPECT(mtrace_release("socket", 4) == -1);  /* release 2 */
  site_texture(4, 5000);                      /* duplicate 1 */
  EXPECT(mtrace_record("texture", 99, -1) == -1 && mtrace_record("texture", 99, INT64_MIN) == -1);
  EXPECT(mtrace_record("texture", 99, INT64_MAX) == -1); /* size 3 */
  EXPECT(mtrace_release("texture", 99) == -1);           /* release 3 */
  EXPECT(mtrace_record(NULL, 1, 1) == -1 && mtrace_record("", 1, 1) == -1);
  EXPECT(mtrace_record("a b", 1, 1) == -1 && mtrace_release("a\n", 1) == -1);
  EXPECT(mtrace_record("a23456789012345678901234567890xx", 1, 1) == -1); /* kind 5 */
  EXPECT(mtrace_record("a23456789012345678901234567890x", ~(uint64_t)0, 0) == 0);
  int good = 0;
  for (int i = 0; i < 10000; ++i) {
    char kind[16];
    sprintf(kind, "kind-%d", i);
    good += mtrace_record(kind, 1, 1) == 0;
  }
  EXPECT(good == 28);                                                              /* kinds 9972 */
  EXPECT(mtrace_release("kind-27", 1) == 0 && mtrace_release("kind-28", 1) == -1); /* release 4 */
}

static void backtraces(void) {
  char text[8192];
  const int file = open("backtrace", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int frames = site_backtrace(file);
  EXPECT(frames > 2);
  const ssize_t size = pread(file, text, sizeof text - 1, 0);
  EXPECT(size > 0);
  text[size] = '\0';
  int found = 0;
  for (const char* line = text; (line = strstr(line, "\t(")) != NULL; ++line) ++found;
  EXPECT(found == frames);
  EXPECT(strstr(text, "\n# module: /") != NULL);
  close(file);
  EXPECT(mtrace_backtrace(file) == -1 && mtrace_backtrace(-1) == -1);
}

static void notes(void) {
  char longest[300];
  memset(longest, 'y', sizeof longest);
  longest[299] = '\0';
  EXPECT(mtrace_note("the %s is %d%%", "first", 100) == 0);
  EXPECT(mtrace_note("hostile\n# end\n\x01\\") == 0);
  EXPECT(mtrace_note("%s", longest) == 0);        /* note 1 */
  EXPECT(mtrace_note_text(longest + 44, 0) == 0); /* 255 bytes: fits */
  EXPECT(mtrace_note_text(longest + 43, 0) == 0); /* one more: note 2 */
  const char* volatile none = NULL;
  EXPECT(mtrace_note(none, 0) == -1 && mtrace_note_text(NULL, 0) == -1); /* note 4 */
  EXPECT(mtrace_note("%s", "") == -1);                                   /* note 5 */
  for (int i = 5; i < 64; ++i) EXPECT(mtrace_note("note %d", i) == 0);
  EXPECT(mtrace_note("one too many") == -1 && mtrace_note("and another") == -1);
}

int main(int argc, char** argv) {
  (void)argv;
  setvbuf(stdout, NULL, _IONBF, 0);
  if (argc > 1) {
    absent();
    puts("good");
    return 0;
  }
  errno = 4242;
  totals();
  recording();
  savepoints();
  resources();
  EXPECT(errno == 4242);
  backtraces();
  notes();
  EXPECT(mtrace_report() == 1);
  EXPECT(mtrace_note("after the first") == 0);
  EXPECT(mtrace_release("texture", 0) == 0);
  EXPECT(mtrace_report_label("second") == 2);
  puts("good");
  return 0;
}
