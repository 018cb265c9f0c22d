// What the program maps, and what becomes of it (argument 1 says which part; truth.h says how the
// sites are told). The address space of one site is nobody else's unless it says so.
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "mtrace.h"
#include "truth.h"

#define PAGE 4096L
#define READ_WRITE (PROT_READ | PROT_WRITE)
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)

static void is(const char* site, long pages, long regions) {
  truth_add(site, pages * PAGE, regions);
}
static char* must(void* p) {
  check(p != MAP_FAILED, "a mapping");
  check(errno == 77, "errno after success");
  return (char*)p;
}

static char* placed(void* p, const char* at) {
  check(must(p) == at, "the fixed address");
  return (char*)p;
}
static size_t bytes(long pages) { return sized((size_t)(pages * PAGE)); }

GIVES(anonymous, (long pages), must(mmap(NULL, bytes(pages), READ_WRITE, PRIVATE, -1, 0)))
GIVES(other, (long pages), must(mmap(NULL, bytes(pages), READ_WRITE, PRIVATE, -1, 0)))
GIVES(child, (void), must(mmap(NULL, bytes(11), READ_WRITE, PRIVATE, -1, 0)))
GIVES(rounded, (void), must(mmap64(NULL, sized(10000), READ_WRITE, PRIVATE, -1, 0)))
GIVES(reserved, (void),
      must(mmap(NULL, sized(1UL << 40), PROT_NONE, PRIVATE | MAP_NORESERVE, -1, 0)))
GIVES(file, (int fd), must(mmap(NULL, sized(5000), PROT_READ, MAP_PRIVATE, fd, 0)))
GIVES(shared, (void), must(mmap(NULL, bytes(4), READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
GIVES(fixed, (char* at, long pages, int flags),
      placed(mmap(at, bytes(pages), READ_WRITE, PRIVATE | flags, -1, 0), at))
GIVES(moved, (char* from, long pages, long to_pages),
      must(mremap(from, bytes(pages), bytes(to_pages), MREMAP_MAYMOVE)))
GIVES(moved_to, (char* from, long pages, char* to, int flags),
      placed(mremap(from, bytes(pages), bytes(pages), MREMAP_MAYMOVE | MREMAP_FIXED | flags, to),
             to))
GIVES(copied, (char* from, long pages), must(mremap(from, sized(0), bytes(pages), MREMAP_MAYMOVE)))

static void unmap(char* at, long pages) {
  check(munmap(at, bytes(pages)) == 0, "munmap");
  check(errno == 77, "errno after munmap");
}
// Past the library, as a runtime of another language does it.
static char* unseen(long pages) {
  return must((void*)syscall(SYS_mmap, NULL, (size_t)(pages * PAGE), READ_WRITE, PRIVATE, -1, 0));
}

static void truth(void) {
  /* 1: each kind of mapping. */
  char* anonymous = site_anonymous(3);
  is("site_anonymous", 3, 1);
  char* rounded = site_rounded();
  is("site_rounded", 3, 1);
  char* reserved = site_reserved();
  is("site_reserved", 1L << 28, 1);
  const int fd = open("/proc/self/exe", O_RDONLY);
  char* file = site_file(fd);
  close(fd);
  is("site_file", 2, 1);
  char* shared = site_shared();
  is("site_shared", 4, 1);
  tell(1);

  /* 2: ends and holes. */
  unmap(reserved, 10);
  is("site_reserved", -10, 0);
  unmap(reserved + (1L << 40) - 5 * PAGE, 5);
  is("site_reserved", -5, 0);
  unmap(reserved + 100 * PAGE, 7);
  is("site_reserved", -7, 1);
  check(munmap(file, sized(10)) == 0, "munmap rounds up");
  is("site_file", -1, 0);
  unmap(rounded, 3);
  is("site_rounded", -3, -1);
  unmap(rounded, 3); /* nothing is there */
  tell(2);

  /* 3: several regions and unknown memory at once; what is mapped over others. */
  char* area = reserved + 1000 * PAGE;
  site_fixed(area, 4, MAP_FIXED);
  is("site_reserved", -4, 1);
  is("site_fixed", 4, 1);
  site_fixed(area + 2 * PAGE, 4, MAP_FIXED);
  is("site_fixed", 2, 1);
  is("site_reserved", -2, 0);
  site_fixed(area + PAGE, 1, MAP_FIXED);
  is("site_fixed", 0, 1);
  check((void*)syscall(SYS_munmap, area + 3 * PAGE, PAGE) == NULL, "unseen munmap");
  unmap(area - 2 * PAGE, 4);
  is("site_reserved", -2, 0);
  is("site_fixed", -2, -2);
  site_fixed(area, 1, MAP_FIXED_NOREPLACE);
  is("site_fixed", 1, 1);
  char* unknown = unseen(3);
  unmap(unknown, 3);
  unknown = unseen(6);
  site_fixed(unknown + PAGE, 2, MAP_FIXED);
  is("site_fixed", 2, 1);
  unmap(unknown, 6);
  is("site_fixed", -2, -1);
  tell(3);

  /* 4: mremap. What it leaves is of its own stack. */
  char* block = site_other(8);
  block = site_moved(block, 8, 5); /* shrunk */
  is("site_moved", 5, 1);
  block = site_moved(block, 5, 5); /* nothing */
  block = site_moved(block, 5, 4000);
  is("site_moved", 3995, 0);
  char* part = site_other(10);
  part[3 * PAGE] = 42;
  char* target = site_anonymous(6);
  is("site_anonymous", 6, 1);
  site_moved_to(part + 3 * PAGE, 2, target + PAGE, 0);
  check(target[PAGE] == 42, "content moved");
  is("site_other", 8, 2);
  is("site_anonymous", -2, 1);
  is("site_moved_to", 2, 1);
  char* copy = site_copied(shared, 4);
  is("site_copied", 4, 1);
  copy[5] = 43;
  check(shared[5] == 43, "the same memory");
  site_moved_to(part, 2, target + 4 * PAGE, MREMAP_DONTUNMAP);
  is("site_anonymous", -2, 0);
  is("site_moved_to", 2, 1);
  unknown = unseen(2);
  unknown = site_moved(unknown, 2, 3);
  is("site_moved", 3, 1);
  tell(4);

  /* 5: nothing stays. */
  unmap(reserved + 10 * PAGE, (1L << 28) - 15);
  is("site_reserved", -((1L << 28) - 15 - 7 - 8), -3);
  is("site_fixed", -5, -2);
  unmap(anonymous, 3);
  is("site_anonymous", -3, -1);
  unmap(file + PAGE, 1);
  is("site_file", -1, -1);
  unmap(shared, 4);
  is("site_shared", -4, -1);
  unmap(copy, 4);
  is("site_copied", -4, -1);
  unmap(block, 4000);
  unmap(unknown, 3);
  is("site_moved", -4003, -2);
  unmap(part, 10);
  is("site_other", -8, -2);
  unmap(target, 6);
  is("site_anonymous", -2, -2);
  is("site_moved_to", -4, -2);
  tell(5);
}

static void show(const char* what, const void* result) {
  printf("%s: %s errno %d\n", what, result == MAP_FAILED ? "failed" : "good", errno);
  errno = 0;
}
static void show_status(const char* what, int result) {
  printf("%s: %d errno %d\n", what, result, errno);
  errno = 0;
}
// Pages of a region that are still there; told for what the site keeps.
static long kept(const char* at, long pages) {
  long count = 0;
  unsigned char in[1];
  for (long i = 0; i < pages; ++i) count += mincore((void*)(at + i * PAGE), PAGE, in) == 0;
  errno = 0;
  return count;
}

static void failures(void) {
  char* p = site_anonymous(10);
  char* q = site_other(10);
  errno = 0;
  show("length 0", mmap(NULL, sized(0), READ_WRITE, PRIVATE, -1, 0));
  show("length too large", mmap(NULL, sized(SIZE_MAX - 4096), READ_WRITE, PRIVATE, -1, 0));
  show("length wraps", mmap(NULL, sized(SIZE_MAX), READ_WRITE, PRIVATE, -1, 0));
  show("length half", mmap(NULL, sized(SIZE_MAX / 2), READ_WRITE, PRIVATE, -1, 0));
  show("no file", mmap(NULL, sized(PAGE), READ_WRITE, MAP_PRIVATE, -1, 0));
  show("offset", mmap(NULL, sized(PAGE), READ_WRITE, PRIVATE, -1, 1));
  show("no kind", mmap(NULL, sized(PAGE), READ_WRITE, MAP_ANONYMOUS, -1, 0));
  show("fixed, not aligned", mmap(p + 1, sized(PAGE), READ_WRITE, PRIVATE | MAP_FIXED, -1, 0));
  show("fixed, no file", mmap(p, sized(PAGE), READ_WRITE, MAP_PRIVATE | MAP_FIXED, -1, 0));
  show("fixed, outside", mmap((void*)-PAGE, sized(PAGE), READ_WRITE, PRIVATE | MAP_FIXED, -1, 0));
  const int directory = open("/", O_RDONLY);
  show("fixed, directory",
       mmap(p + PAGE, sized(PAGE), PROT_READ, MAP_PRIVATE | MAP_FIXED, directory, 0));
  close(directory);
  errno = 0;
  show("no replacing",
       mmap(p + PAGE, sized(PAGE), READ_WRITE, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0));
  show("no replacing, fixed",
       mmap(p + PAGE, sized(PAGE), READ_WRITE, PRIVATE | MAP_FIXED | MAP_FIXED_NOREPLACE, -1, 0));
  show_status("munmap 0", munmap(p, sized(0)));
  show_status("munmap, not aligned", munmap(p + 1, sized(PAGE)));
  show_status("munmap wraps", munmap(p, sized(SIZE_MAX)));
  show_status("munmap outside", munmap((void*)-PAGE, sized(PAGE)));
  show_status("munmap of too much", munmap(p, sized(SIZE_MAX / 2)));
  show_status("munmap of nothing", munmap((void*)(1L << 20), sized(PAGE)));
  show("mremap, not aligned", mremap(p + 1, sized(PAGE), sized(PAGE), MREMAP_MAYMOVE));
  show("mremap to 0", mremap(p, sized(PAGE), sized(0), MREMAP_MAYMOVE));
  show("mremap flags", mremap(p, sized(PAGE), sized(PAGE), 64));
  show("mremap fixed alone", mremap(p, sized(PAGE), sized(PAGE), MREMAP_FIXED, q));
  show("mremap of nothing",
       mremap((void*)(1L << 20), sized(PAGE), sized(2 * PAGE), MREMAP_MAYMOVE));
  show("mremap copies private", mremap(p, sized(0), sized(PAGE), MREMAP_MAYMOVE));
  show("mremap old wraps", mremap(p, sized(SIZE_MAX), sized(PAGE), MREMAP_MAYMOVE));
  /* q lies right above or below p, or elsewhere: a page in the middle cannot grow. */
  show("mremap in place", mremap(p + PAGE, sized(PAGE), sized(2 * PAGE), 0));
  show("mremap over itself",
       mremap(p, sized(2 * PAGE), sized(2 * PAGE), MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE));
  show("mremap too large", mremap(p, sized(PAGE), sized(1UL << 46), MREMAP_MAYMOVE));
  show("mremap fixed from nothing", mremap((void*)(1L << 20), sized(PAGE), sized(PAGE),
                                           MREMAP_MAYMOVE | MREMAP_FIXED, q + PAGE));
  show("mremap fixed, too large",
       mremap(p, sized(PAGE), sized(1UL << 47), MREMAP_MAYMOVE | MREMAP_FIXED, q + PAGE));
  show("mremap dontunmap grows",
       mremap(p, sized(PAGE), sized(2 * PAGE), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL));
  const long of_p = kept(p, 10);
  const long of_q = kept(q, 10);
  printf("kept %ld %ld\n", of_p, of_q);
  /* Which of two neighbours has lost the page that a failed call unmapped first is known. */
  is("site_anonymous", of_p, of_p == 10 ? 1 : 2);
  is("site_other", of_q, of_q == 10 ? 1 : 2);
  tell(1);
}

// A child made in each of the ways ends some of what it inherited and maps something.
static void children(const char* how) {
  char* p = site_anonymous(20);
  site_other(5);
  is("site_anonymous", 20, 1);
  is("site_other", 5, 1);
  pid_t child;
  if (strcmp(how, "fork") == 0) {
    child = fork();
  } else if (strcmp(how, "_Fork") == 0) {
    child = _Fork();
  } else if (strcmp(how, "clone") == 0) {
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  } else {
    child = vfork();
  }
  if (child == 0) {
    unmap(p + 5 * PAGE, 5);
    site_child();
    _exit(0);
  }
  check(reap(child) == 0, "the child");
  if (strcmp(how, "vfork") == 0) {
    is("site_anonymous", -5, 1);
    is("site_child", 11, 1);
  }
  tell(1);
}

static volatile int stop;

// Maps, unmaps and moves at random, and leaves nothing.
static void* work(void* argument) {
  char* at[16] = {NULL};
  long pages[16];
  unsigned seed = (unsigned)(uintptr_t)argument;
  const unsigned rounds = seed > 100 ? 500 : 20000;
  errno = 77;
  for (unsigned round = 0; argument == NULL ? !stop : round < rounds; ++round) {
    seed = seed * 1664525u + 1013904223u;
    const unsigned i = seed >> 28;
    const long size = 2 + (seed >> 12) % 30;
    if (at[i] == NULL) {
      at[i] = site_anonymous(size);
      pages[i] = size;
    } else if ((seed & 0x800) != 0) {
      at[i] = site_moved(at[i], pages[i], size);
      pages[i] = size;
    } else if ((seed & 0x400) != 0 && pages[i] > 1) {
      unmap(at[i] + PAGE, pages[i] - 1);
      pages[i] = 1;
    } else {
      unmap(at[i], pages[i]);
      at[i] = NULL;
    }
  }
  for (int i = 0; i < 16; ++i) {
    if (at[i] != NULL) unmap(at[i], pages[i]);
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  for (long i = 0; i < 4; ++i) pthread_create(&all[i], NULL, work, (void*)(i + 1));
  for (int i = 0; i < 4; ++i) pthread_join(all[i], NULL);
  site_other(3);
  is("site_other", 3, 1);
  tell(1);
}

// Children of a busy process; each maps something and says by its report what it holds.
static void forks(void) {
  pthread_t all[2];
  for (int i = 0; i < 2; ++i) pthread_create(&all[i], NULL, work, NULL);
  int good = 0;
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char* p = site_child();
      unmap(p + PAGE, 1);
      work((void*)101);
      _exit(0);
    }
    const int status = reap(child);
    good += status == 0;
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(all[i], NULL);
  printf("good %d\n", good);
}

static volatile sig_atomic_t handled;
static void handler(int signal) {
  (void)signal;
  const int error = errno;
  errno = 77;
  char* p = site_other(3);
  unmap(p + PAGE, 1);
  unmap(p, 3);
  errno = error;
  ++handled;
}

// A handler that maps and unmaps interrupts the same, in one thread.
static void handlers(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (handled < 300) work((void*)101);
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  site_other(9);
  is("site_other", 9, 1);
  tell(1);
}

SITE void site_recorded(void) {
  mtrace_record("mmap", 1, 100);
  NO_TAIL;
}

// A kind of that name is the program's, too; and what is mapped while recording is stopped.
static void shared_kind(void) {
  char* p = site_anonymous(6);
  is("site_anonymous", 6, 1);
  site_recorded();
  truth_add("site_recorded", 100, 1);
  tell(1);
  mtrace_stop();
  char* unseen_region = site_other(4);
  unmap(p + 4 * PAGE, 2);
  is("site_anonymous", -2, 0);
  site_fixed(p, 1, MAP_FIXED);
  is("site_anonymous", -1, 0);
  unmap(site_moved(p + PAGE, 1, 1), 1);
  is("site_anonymous", -1, 0);
  mtrace_start();
  unmap(unseen_region, 4);
  tell(2);
  mtrace_release("mmap", 1);
  truth_add("site_recorded", -100, -1);
  site_other(2);
  is("site_other", 2, 1);
  tell(3);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kParts[] = {{"truth", truth}, {"failures", failures},       {"threads", threads},
                {"forks", forks}, {"shared_kind", shared_kind}, {"handlers", handlers}};
  if (argc < 2) return 2;
  truth_signals = getenv("MTRACE_MMAP") != NULL;
  errno = 77;
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; ++i) {
    if (strcmp(argv[1], kParts[i].name) == 0) return kParts[i].run(), 0;
  }
  children(argv[1]);
  return 0;
}
