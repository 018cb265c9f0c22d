// A runtime that makes code and describes it to GDB: an object file in memory for each piece, in
// the list that __jit_debug_descriptor leads to. Its functions have no call-frame information.
// Says "names BYTES A B" of blocks of so many bytes: the innermost two functions ("-": no name).
#include <elf.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

struct Entry {
  Entry* next;
  Entry* previous;
  const void* symfile;
  uint64_t bytes;
};
struct Descriptor {
  uint32_t version;
  uint32_t action;
  Entry* relevant;
  Entry* first;
};

}  // namespace

extern "C" {
Descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
__attribute__((noipa)) void __jit_debug_register_code() {}
}

namespace {

using Allocate = void* (*)(size_t);

// push rbp; mov rbp, rsp; sub rsp, 32; movabs rax, TARGET; call rax; leave; ret
constexpr unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 32,   0x48, 0xb8, 0, 0,
                                   0,    0,    0,    0,    0,    0,    0xff, 0xd0, 0xc9, 0xc3};
constexpr size_t kCodeBytes = 32;
unsigned char* code;

Allocate make_code(unsigned place, Allocate target) {
  unsigned char* const at = code + place * kCodeBytes;
  memcpy(at, kCode, sizeof kCode);
  memcpy(at + 10, &target, sizeof target);
  return reinterpret_cast<Allocate>(reinterpret_cast<uintptr_t>(at));
}

// What a compiler's back end gives: a relocatable file whose code is where it runs, or a file with
// addresses.
struct Symfile {
  Elf64_Ehdr header;
  Elf64_Shdr sections[4];  // none, code, symbols, names
  Elf64_Sym symbols[2];
  char names[64];
};

Symfile describe(Allocate function, const std::string& name, bool relocatable) {
  Symfile file = {};
  memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_ident[EI_DATA] = ELFDATA2LSB;
  file.header.e_type = relocatable ? ET_REL : ET_EXEC;
  file.header.e_machine = EM_X86_64;
  file.header.e_shoff = offsetof(Symfile, sections);
  file.header.e_shentsize = sizeof(Elf64_Shdr);
  file.header.e_shnum = 4;
  const auto begin = reinterpret_cast<uintptr_t>(function);
  file.sections[1].sh_type = SHT_NOBITS;
  file.sections[1].sh_addr = relocatable ? begin - 16 : 0;
  file.sections[2].sh_type = SHT_SYMTAB;
  file.sections[2].sh_offset = offsetof(Symfile, symbols);
  file.sections[2].sh_size = sizeof file.symbols;
  file.sections[2].sh_link = 3;
  file.sections[3].sh_type = SHT_STRTAB;
  file.sections[3].sh_offset = offsetof(Symfile, names);
  file.sections[3].sh_size = sizeof file.names;
  file.symbols[1].st_name = 1;
  file.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  file.symbols[1].st_shndx = 1;
  file.symbols[1].st_value = relocatable ? 16 : begin;
  file.symbols[1].st_size = sizeof kCode;
  memcpy(file.names + 1, name.data(), std::min(name.size(), sizeof file.names - 2));
  return file;
}

Entry* add(const void* symfile, size_t bytes) {
  auto* const entry = new Entry{__jit_debug_descriptor.first, nullptr, symfile, bytes};
  if (entry->next != nullptr) entry->next->previous = entry;
  __jit_debug_descriptor.first = entry;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = 1;
  __jit_debug_register_code();
  return entry;
}

Entry* add(Allocate function, const std::string& name, bool relocatable = true) {
  return add(new Symfile(describe(function, name, relocatable)), sizeof(Symfile));
}

void remove(Entry* entry) {
  (entry->previous != nullptr ? entry->previous->next : __jit_debug_descriptor.first) = entry->next;
  if (entry->next != nullptr) entry->next->previous = entry->previous;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = 2;
  __jit_debug_register_code();
  delete static_cast<const Symfile*>(entry->symfile);
  delete entry;
}

}  // namespace

extern "C" {
void* kept[8192];
unsigned keeping = 0;
__attribute__((noipa)) void keep(Allocate function, size_t bytes) {
  kept[keeping++] = function(bytes);
}
}

namespace {

// Both kinds of file; a name of C++.
void run_named() {
  const Allocate leaf = make_code(0, malloc);
  const Allocate outer = make_code(1, leaf);
  add(leaf, "_ZN5maker4leafEi");
  add(outer, "made outer", false);
  keep(outer, 1001);
  puts("names 1001 maker::leaf(int)|made outer");
}

// The runtime throws its code away before the report.
void run_gone() {
  const Allocate leaf = make_code(0, malloc);
  Entry* const entry = add(leaf, "gone_leaf");
  keep(leaf, 1002);
  remove(entry);
  memset(code, 0, kCodeBytes);
  puts("names 1002 gone_leaf|keep");
}

// Other code comes to its place; an entry of the same address tells of it.
void run_replaced() {
  const Allocate leaf = make_code(0, malloc);
  remove((keep(leaf, 1003), add(leaf, "old_leaf")));
  auto* const symfile = new Symfile(describe(leaf, "old_leaf", true));
  Entry* const entry = add(symfile, sizeof *symfile);
  keep(leaf, 1003);
  raise(SIGUSR1);
  remove(entry);
  raise(SIGUSR1);
  add(leaf, "new_leaf");
  keep(leaf, 1003);
  puts("names 1003 new_leaf|keep");
}

// Lists and files that no walk and no report may trip over.
void run_hostile() {
  const Allocate leaf = make_code(0, malloc);
  Symfile good = describe(leaf, "hostile_leaf", true);
  auto* const bytes = reinterpret_cast<unsigned char*>(&good);
  for (size_t at = 0; at < offsetof(Symfile, names); at += 2) {
    Symfile bad = good;
    reinterpret_cast<unsigned char*>(&bad)[at] = static_cast<unsigned char>(~bytes[at]);
    add(new Symfile(bad), sizeof bad);
    add(new Symfile(good), at);  // cut short
  }
  keep(leaf, 1004);
  raise(SIGUSR1);
  add(nullptr, 1 << 30);
  add(reinterpret_cast<void*>(uintptr_t{1} << 46), sizeof good);
  void* const unmapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  add(unmapped, 4096);
  __jit_debug_descriptor.first->next = __jit_debug_descriptor.first;  // a circle
  keep(make_code(3, malloc), 1004);
  raise(SIGUSR1);
  __jit_debug_descriptor.first = static_cast<Entry*>(unmapped);
  keep(make_code(2, malloc), 1004);
  raise(SIGUSR1);
  __jit_debug_descriptor.first = nullptr;
  add(leaf, "hostile_end");
  keep(leaf, 1005);
  puts("names 1005 hostile_end|keep");
}

// One thread makes and drops code all the time; another allocates through some that stays.
void run_changing() {
  const Allocate leaf = make_code(0, malloc);
  add(leaf, "lasting_leaf");
  std::atomic<bool> done{false};
  std::thread changing([&done] {
    for (unsigned i = 0; !done; ++i) {
      Entry* const entry = add(make_code(1 + i % 64, malloc), "passing_" + std::to_string(i % 64));
      remove(entry);
    }
  });
  for (unsigned i = 0; i < 2000; ++i) {
    keep(make_code(65 + i % 512, leaf), 1006);
    if (i % 200 == 0) raise(SIGUSR1);
  }
  done = true;
  changing.join();
  puts("names 1006 lasting_leaf|-");
}

// Names that nothing tells but the library's own memory.
void run_killed() {
  run_named();
  fflush(stdout);
  raise(SIGKILL);
}

}  // namespace

extern "C" int run(const char* mode) {
  code = static_cast<unsigned char*>(
      mmap(nullptr, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (code == MAP_FAILED) return 3;
  static const struct {
    const char* name;
    void (*run)();
  } modes[] = {{"named", run_named},     {"gone", run_gone},         {"replaced", run_replaced},
               {"hostile", run_hostile}, {"changing", run_changing}, {"killed", run_killed}};
  for (const auto& one : modes) {
    if (strcmp(mode, one.name) == 0) return one.run(), 0;
  }
  return 2;
}
