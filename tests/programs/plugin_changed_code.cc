// Preloaded, changes a byte of libc's code, as tools that patch functions in memory do.
// CHANGED_CODE: the last byte of a function, by its name and size ("dlopen:120"), or of the page in
// which the code ends ("rest").
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uintptr_t kPage = 4096;

void change(uintptr_t address) {
  void* page = reinterpret_cast<void*>(address & ~(kPage - 1));
  if (mprotect(page, kPage, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) _exit(97);
  *reinterpret_cast<char*>(address) ^= 0x5a;
  if (mprotect(page, kPage, PROT_READ | PROT_EXEC) != 0) _exit(97);
}

int visit(dl_phdr_info* object, size_t, void* code_end) {
  if (strstr(object->dlpi_name, "libc.so.6") == nullptr) return 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    *static_cast<uintptr_t*>(code_end) = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
  }
  return 1;
}

__attribute__((constructor)) void change_code() {
  const char* what = getenv("CHANGED_CODE");
  if (what == nullptr) return;
  if (strcmp(what, "rest") == 0) {
    uintptr_t code_end = 0;
    dl_iterate_phdr(visit, &code_end);
    return change((code_end + 15) & ~uintptr_t{15});
  }
  char name[64] = {};
  const char* colon = strchr(what, ':');
  if (colon == nullptr || colon - what >= static_cast<ptrdiff_t>(sizeof name)) _exit(96);
  memcpy(name, what, static_cast<size_t>(colon - what));
  const auto function = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, name));
  if (function == 0) _exit(96);
  change(function + strtoul(colon + 1, nullptr, 10) - 1);
}

}  // namespace
