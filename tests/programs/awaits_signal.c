// awaits_signal sigsuspend|pause: holds 5,000 bytes, says "ready", and waits for one SIGUSR2 by a
// call that only a handler ends. Says "woken".
#include "truth.h"

static void* kept;
static volatile sig_atomic_t got;

static void handler(int signal) { got = signal; }

int main(int argc, char** argv) {
  struct sigaction action = {.sa_handler = handler};
  sigset_t two, before;
  sigaction(SIGUSR2, &action, NULL);
  sigemptyset(&two);
  sigaddset(&two, SIGUSR2);
  sigprocmask(SIG_BLOCK, &two, &before);
  kept = malloc(sized(5000));
  fill(kept, 5000);
  print("ready");
  if (argc > 1 && strcmp(argv[1], "pause") == 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    pause();
  } else {
    while (got == 0) sigsuspend(&before);
  }
  printf("woken\n");
  return got == SIGUSR2 ? 0 : 1;
}
