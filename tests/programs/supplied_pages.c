// supplied_pages: a thread supplies the pages of a mapping by userfaultfd, each when main
// touches it first; main also allocates. At each line of input main touches one more page of each
// of three mappings and says "touched", at the end of the input it checks them all, says "done" and
// ends with 3. The first and last pages of the mappings are never touched before that.
// Says "no userfaultfd" and ends with 77 where the kernel does not let it.
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "truth.h"

enum { kPage = 4096, kPages = 4096, kMappings = 3 };

static char* mappings[kMappings];
static void* volatile kept;

static void* supply(void* argument) {
  const int faults = *(int*)argument;
  static char page[kPage] __attribute__((aligned(kPage)));
  for (;;) {
    struct uffd_msg message;
    struct pollfd wanted = {faults, POLLIN, 0};
    if (poll(&wanted, 1, -1) < 0) continue;
    if (read(faults, &message, sizeof message) != sizeof message) continue;
    const unsigned long at = message.arg.pagefault.address & ~(unsigned long)(kPage - 1);
    memset(page, (int)(at / kPage % 251), kPage);
    struct uffdio_copy copy = {at, (unsigned long)page, kPage, 0, 0};
    ioctl(faults, UFFDIO_COPY, &copy);
  }
  return NULL;
}

static int is_right(volatile char* page) {
  return (unsigned char)*page == (unsigned long)page / kPage % 251;
}

int main(void) {
  static int faults;
  faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  struct uffdio_api api = {UFFD_API, 0, 0};
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) {
    puts("no userfaultfd");
    return 77;
  }
  for (int i = 0; i < kMappings; ++i) {
    // Apart from each other, on the boundaries of the chunks of V8's heap.
    char* place = mmap(NULL, 4 * kPages * kPage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    place += (unsigned long)kPages * kPage - (unsigned long)place % ((unsigned long)kPages * kPage);
    mappings[i] = mmap(place, (size_t)kPages * kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    struct uffdio_register wish = {
        {(unsigned long)mappings[i], (size_t)kPages * kPage}, UFFDIO_REGISTER_MODE_MISSING, 0};
    if (ioctl(faults, UFFDIO_REGISTER, &wish) != 0) return 1;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, supply, &faults) != 0) return 1;
  sigset_t trigger;  // so the thread handles it
  sigemptyset(&trigger);
  sigaddset(&trigger, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &trigger, NULL);
  int right = 1;
  for (int i = 0; i < kMappings; ++i) {
    // Enough for a line of its own in a report.
    for (int page = 1; page < kPages - 600; ++page) right &= is_right(mappings[i] + page * kPage);
  }
  print("ready");
  int next = kPages - 600;
  for (int letter; (letter = getchar()) != EOF;) {
    if (letter != '\n') continue;
    kept = malloc(1000);
    for (int i = 0; i < kMappings; ++i) right &= is_right(mappings[i] + next * kPage);
    ++next;
    print("touched");
  }
  for (int i = 0; i < kMappings; ++i) {
    for (int page = 0; page < kPages; ++page) right &= is_right(mappings[i] + page * kPage);
  }
  puts(right ? "done" : "wrong");
  return right ? 3 : 4;
}
