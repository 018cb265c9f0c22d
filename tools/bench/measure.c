// measure RESULT TIMES [NAME=VALUE]... COMMAND [ARGUMENT]...
//
// Runs the command TIMES times, one after the other, with the environment changed as said, and
// writes a line to RESULT: status of the last run as from waitpid, then seconds of wall time, user
// and system time, all runs together, and the peak resident set in KiB. Ends at the first failure.
//
// It stands between the driver and the command because a process that is forked off a large one
// begins with the large one's peak.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double seconds(struct timeval time) {
  return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static _Noreturn void start(char** word) {
  while (*word != NULL && strchr(*word, '=') != NULL && **word != '/') putenv(*word++);
  if (*word != NULL) execvp(*word, word);
  fprintf(stderr, "measure: %s: %s\n", *word != NULL ? *word : "no command", strerror(errno));
  _exit(127);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int times = atoi(argv[2]);
  int status = 0;
  double wall = 0;
  double user = 0;
  double system = 0;
  long peak = 0;
  for (int i = 0; i < times && status == 0; ++i) {
    const double begin = now();
    const pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) start(argv + 3);
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0) {
      if (errno != EINTR) return 2;
    }
    wall += now() - begin;
    user += seconds(usage.ru_utime);
    system += seconds(usage.ru_stime);
    if (usage.ru_maxrss > peak) peak = usage.ru_maxrss;
  }
  FILE* result = fopen(argv[1], "w");
  if (result == NULL) return 2;
  fprintf(result, "%d %.6f %.6f %.6f %ld\n", status, wall, user, system, peak);
  return fclose(result) == 0 ? 0 : 2;
}
