// Starts the program of argument 2 and those after it in the way that argument 1 names, and ends
// with its status.
#include <spawn.h>

#include "truth.h"

extern char** environ;

static int status_of(pid_t pid) {
  int status = 0;
  if (pid <= 0 || waitpid(pid, &status, 0) != pid) return 99;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void become(const char* way, const char* path, char** argv) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (strcmp(way, "execve") == 0) execve(path, argv, environ);
  if (strcmp(way, "execv") == 0) execv(path, argv);
  if (strcmp(way, "execvp") == 0) execvp(path, argv);
  if (strcmp(way, "execvpe") == 0) execvpe(path, argv, environ);
  if (strcmp(way, "execl") == 0) execl(path, argv[0], NULL);
  if (strcmp(way, "execle") == 0) execle(path, argv[0], NULL, environ);
  if (strcmp(way, "execlp") == 0) execlp(path, argv[0], NULL);
  if (strcmp(way, "fexecve") == 0) fexecve(fd, argv, environ);
  if (strcmp(way, "execveat") == 0) execveat(fd, "", argv, environ, AT_EMPTY_PATH);
  if (strcmp(way, "execveat-path") == 0) execveat(AT_FDCWD, path, argv, environ, 0);
  _exit(97);
}

int main(int argc, char** argv) {
  if (argc < 3) return 96;
  const char* way = argv[1];
  pid_t pid = 0;
  volatile int error = 0;
  if (strcmp(way, "posix_spawn") == 0) {
    error = posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ);
  } else if (strcmp(way, "posix_spawnp") == 0) {
    error = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
  } else if (strcmp(way, "system") == 0) {
    return system(argv[2]);
  } else if (strcmp(way, "vfork") == 0) {
    pid = vfork();
    if (pid == 0) become("execve", argv[2], argv + 2);
  } else {
    pid = fork();
    if (pid == 0) become(way, argv[2], argv + 2);
  }
  if (error != 0) printf("error %d\n", error);
  return status_of(pid);
}
