// Preloaded, maps files once more, as debuggers, emulators and symbolizers do. SECOND_MAPPINGS:
// "below" or "above" (all libraries that the program runs by), "read" or "execute" (what the new
// mappings allow), and the files, each after a colon.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uintptr_t kStep = 1 << 20;
constexpr int kMostSteps = 4096;

void fail(const char* what) {
  perror(what);
  _exit(97);
}

// Where the libraries lie, from the first to the end of the last.
void bounds(uintptr_t& lowest, uintptr_t& highest) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == nullptr) fail("maps");
  lowest = UINTPTR_MAX;
  highest = 0;
  char line[4352];
  while (fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t begin;
    uintptr_t end;
    if (strstr(line, ".so") == nullptr ||
        sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) {
      continue;
    }
    if (begin < lowest) lowest = begin;
    if (end > highest) highest = end;
  }
  fclose(maps);
}

void map_again(const char* path, bool above, int protection) {
  struct stat state;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &state) != 0) fail(path);
  const auto size = static_cast<size_t>(state.st_size);
  const uintptr_t room = (size + kStep - 1) / kStep * kStep;
  uintptr_t lowest;
  uintptr_t highest;
  bounds(lowest, highest);
  uintptr_t wanted = above ? (highest + kStep - 1) / kStep * kStep : lowest / kStep * kStep - room;
  void* found = MAP_FAILED;
  for (int i = 0; i < kMostSteps && found == MAP_FAILED; ++i) {
    found = mmap(reinterpret_cast<void*>(wanted), size, protection,
                 MAP_PRIVATE | MAP_FIXED_NOREPLACE, file, 0);
    wanted = above ? wanted + kStep : wanted - kStep;
  }
  if (found == MAP_FAILED) fail("mmap");
  close(file);
}

__attribute__((constructor)) void map_all() {
  const char* variable = getenv("SECOND_MAPPINGS");
  char text[4096];
  if (variable == nullptr || strlen(variable) >= sizeof text) return;
  strcpy(text, variable);
  char* rest = text;
  const bool above = strcmp(strsep(&rest, ":"), "above") == 0;
  const char* allowed = strsep(&rest, ":");
  const int protection =
      allowed != nullptr && strcmp(allowed, "execute") == 0 ? PROT_READ | PROT_EXEC : PROT_READ;
  while (const char* path = strsep(&rest, ":")) map_again(path, above, protection);
}

}  // namespace
