// Calls LeakSanitizer's interface where there is one: `ignore`, `disable`, `roots`, `none`,
// `recoverable`, `fatal`; `roots` waits for its input to end. Prints "lost BYTES BLOCKS": what is a leak then, and what a check answers.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void __lsan_ignore_object(const void* object) __attribute__((weak));
void __lsan_register_root_region(const void* begin, size_t size) __attribute__((weak));
void __lsan_unregister_root_region(const void* begin, size_t size) __attribute__((weak));
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));
void __lsan_do_leak_check(void) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static __attribute__((noinline)) void wipe_stack(void) {
  volatile char room[16384];
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0;
}

static __attribute__((noinline)) void** make(size_t size) {
  void* block = malloc(size);
  memset(block, 0, size);
  return block;
}

// A block, and one that only it points to.
static __attribute__((noinline)) void lose(size_t size, int by_name) {
  void** block = make(size);
  block[1] = make(size / 2);
  if (by_name) __lsan_ignore_object((char*)block + 8);
}

static __attribute__((noinline)) void lose_plainly(void) { lose(1008, 0); }
static __attribute__((noinline)) void lose_ignored(void) { lose(2000, 1); }

static __attribute__((noinline)) void lose_disabled(void) {
  __lsan_disable();
  __lsan_disable();
  for (int i = 0; i < 10; ++i) lose(4000, 0);
  __lsan_enable();
  lose(4000, 0);
  lose(200, 0);
  *make(32) = calloc(1, 5000);
  *make(32) = realloc(make(16), 6000);
  __lsan_enable();
}
// A block of 1008 bytes that nothing points to; each half holds another one. The second half is
// a root; the first is one no more. Of two times that the second was named one is taken back.
static __attribute__((noinline)) void hold_in_region(void) {
  char* block = (char*)make(1008);
  void* first = make(512);
  void* second = make(640);
  memcpy(block + 8, &first, sizeof first);
  memcpy(block + 800, &second, sizeof second);
  __lsan_register_root_region(block, 504);
  __lsan_register_root_region(block + 504, 504);
  __lsan_register_root_region(block + 504, 504);
  __lsan_unregister_root_region(block + 504, 504);
  __lsan_unregister_root_region(block, 504);
}

static void* lose_beside(void* unused) {
  lose(1008, 0);
  return unused;
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "none";
  unsigned lost = 1;
  if (__lsan_do_leak_check == NULL || __lsan_disable == NULL || __lsan_enable == NULL ||
      __lsan_do_recoverable_leak_check == NULL || __lsan_ignore_object == NULL ||
      __lsan_register_root_region == NULL || __lsan_unregister_root_region == NULL) {
    puts("no interface");
    return 0;
  }
  setvbuf(stdout, NULL, _IONBF, 0);
  if (strcmp(what, "none") == 0) {
    wipe_stack();
    printf("check %d\n", __lsan_do_recoverable_leak_check());
    return 0;
  }
  if (strcmp(what, "roots") == 0) {
    hold_in_region();
    wipe_stack();
    puts("ready");
    return getchar() == EOF ? 0 : 1;
  }
  lose_plainly();
  if (strcmp(what, "ignore") == 0) lose_ignored();
  if (strcmp(what, "disable") == 0) {
    pthread_t thread;
    lose_disabled();
    lose_plainly();
    pthread_create(&thread, NULL, lose_beside, NULL);
    pthread_join(thread, NULL);
    lost = 3;
  }
  wipe_stack();
  printf("lost %u %u\n", 1008 * lost, lost);
  if (strcmp(what, "recoverable") == 0) {
    printf("check %d\n", __lsan_do_recoverable_leak_check());
    lose_plainly();
    wipe_stack();
    printf("check %d\n", __lsan_do_recoverable_leak_check());
  }
  if (strcmp(what, "fatal") == 0) {
    __lsan_do_leak_check();
    puts("went on");
  }
  return 0;
}
