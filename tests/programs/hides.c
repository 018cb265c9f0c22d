// Hides the directory of argument 1 and becomes the program of argument 3 and those after it.
// Argument 2: "mount" (a file system is mounted over the directory), "chroot" (into one that has
// /usr, /bin and /lib only), "user" (the directory is closed to the user that the process becomes).
// Ends with status 77 where the system does not let it.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "truth.h"

static void must(int good) {
  if (!good) _exit(77);
}

static void bind(const char* root, const char* directory) {
  char inside[4096];
  struct stat info;
  if (lstat(directory, &info) != 0) return;
  snprintf(inside, sizeof inside, "%s%s", root, directory);
  if (S_ISLNK(info.st_mode)) {
    char target[256] = {0};
    must(readlink(directory, target, sizeof target - 1) > 0 && symlink(target, inside) == 0);
  } else {
    must(mkdir(inside, 0755) == 0 && mount(directory, inside, NULL, MS_BIND | MS_REC, NULL) == 0);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 96;
  const char* directory = argv[1];
  if (strcmp(argv[2], "user") == 0) {
    must(setgid(65534) == 0 && setuid(65534) == 0 && access(directory, X_OK) != 0);
  } else {
    must(unshare(CLONE_NEWNS | (geteuid() != 0 ? CLONE_NEWUSER : 0)) == 0);
    must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    must(mount("none", directory, "tmpfs", 0, NULL) == 0);
  }
  if (strcmp(argv[2], "chroot") == 0) {
    bind(directory, "/usr");
    bind(directory, "/bin");
    bind(directory, "/lib");
    bind(directory, "/lib64");
    must(chroot(directory) == 0 && chdir("/") == 0);
  }
  execvp(argv[3], argv + 3);
  return 95;
}
