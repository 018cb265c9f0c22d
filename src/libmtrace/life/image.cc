
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "base/machine.h"
#include "base/probe.h"
#include "base/spawn.h"
#include "base/writer.h"
#include "format/loader_name.h"
#include "life/environment.h"
#include "life/options.h"
#include "modules/linkage.h"

namespace mtrace::life {
namespace {

constexpr size_t kHead = 256;  // bytes of a file that the kernel looks at
constexpr size_t kPath = 1024;
constexpr unsigned kMostScripts = 5;  // nested interpreters: the kernel's limit
constexpr unsigned kMostSegments = 64;
constexpr size_t kMostRoom = 64 * 1024;

enum class Image : uint8_t { kTakes, kForeign, kScript };

// Whether this is the loader of this very program, by whatever name: it takes the library again.
bool is_own_loader(std::string_view path) {
  for (const link_map* one = modules::first_object(); one != nullptr; one = one->l_next) {
    if (modules::is_loader(*one)) {
      return format::loader_file(path) == format::loader_file(one->l_name);
    }
  }
  return false;
}

Image kind_of_program(int fd, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine::kElfMachine) {
    return Image::kForeign;
  }
  const unsigned count = header.e_phnum < kMostSegments ? header.e_phnum : kMostSegments;
  for (unsigned i = 0; i < count; ++i) {
    Elf64_Phdr segment;
    const uint64_t at = header.e_phoff + i * sizeof segment;
    if (base::read_at(fd, &segment, sizeof segment, at) != sizeof segment) return Image::kTakes;
    if (segment.p_type != PT_INTERP) continue;
    char loader[kHead];
    const size_t size = segment.p_filesz < kHead ? segment.p_filesz : kHead;
    const long got = base::read_at(fd, loader, size, segment.p_offset);
    if (got <= 0) return Image::kTakes;
    const std::string_view path(loader, strnlen(loader, static_cast<size_t>(got)));
    const bool takes =
        format::is_glibc_loader(path) || format::is_musl_loader(path) || is_own_loader(path);
    return takes ? Image::kTakes : Image::kForeign;
  }
  return Image::kTakes;
}

// `head` begins "#! interpreter argument\n". Returns the interpreter, zero-terminated, or nullptr.
char* interpreter_of(char* head) {
  char* path = head + 2;
  while (*path == ' ' || *path == '\t') ++path;
  path[strcspn(path, " \t\n")] = '\0';
  return *path != '\0' ? path : nullptr;
}

Image kind_of(int fd, char (&head)[kHead + 1]) {
  const long got = base::read_at(fd, head, kHead, 0);
  if (got >= 2 && head[0] == '#' && head[1] == '!') {
    head[got] = '\0';
    return Image::kScript;
  }
  Elf64_Ehdr header;
  if (got < static_cast<long>(sizeof header) || memcmp(head, ELFMAG, SELFMAG) != 0) {
    return Image::kTakes;
  }
  memcpy(&header, head, sizeof header);
  return kind_of_program(fd, header);
}

// `fd`: a descriptor, which it closes, or a negative errno.
bool opened_takes_library(long fd) {
  char head[kHead + 1];
  for (unsigned scripts = 0; fd >= 0 && scripts <= kMostScripts; ++scripts) {
    const Image kind = kind_of(static_cast<int>(fd), head);
    base::close_file(static_cast<int>(fd));
    if (kind != Image::kScript) return kind == Image::kTakes;
    const char* next = interpreter_of(head);
    fd = next != nullptr ? base::open_to_read(next) : -1;
  }
  if (fd >= 0) base::close_file(static_cast<int>(fd));
  return true;
}

bool file_takes_library(const char* path, int directory = AT_FDCWD) {
  bool takes = true;
  base::with_own_files([&] { takes = opened_takes_library(base::open_to_read(path, directory)); },
                       directory);
  return takes;
}

constexpr size_t kPrefix = sizeof kPreload - 1;

bool is_preload(const char* entry) { return strncmp(entry, kPreload, kPrefix) == 0; }

// Writes `entry` without this library to `out`. Returns `out`; nullptr: nothing is left.
char* preload_without_library(const char* entry, char* out) {
  memcpy(out, entry, kPrefix);
  size_t size = kPrefix;
  for (const char* token = entry + kPrefix; *token != '\0';) {
    const size_t length = strcspn(token, " :");
    if (length != 0 && !is_own_token(token, length, own_path())) {
      if (size != kPrefix) out[size++] = ':';
      memcpy(out + size, token, length);
      size += length;
    }
    token += length;
    if (*token != '\0') ++token;
  }
  out[size] = '\0';
  return size != kPrefix ? out : nullptr;
}

}  // namespace

bool sees_library() { return own_path()[0] != '/' || !base::is_out_of_sight(own_path()); }

bool takes_library(const char* path) { return takes_library_at(AT_FDCWD, path, 0); }

bool takes_library_at(int fd, const char* path, int flags) {
  if ((flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0')) {
    return takes_library(fd);
  }
  return path == nullptr || base::may_be_filtered() || file_takes_library(path, fd);
}

bool takes_library(int fd) {
  if (base::may_be_filtered()) return true;
  char path[64];
  Writer(path, sizeof path)
      .text("/proc/thread-self/fd/")
      .number(static_cast<uint64_t>(fd))
      .finish();
  return file_takes_library(path);
}

bool found_takes_library(const char* file) {
  if (file == nullptr || strchr(file, '/') != nullptr) return takes_library(file);
  const char* path = find_variable(environ, "PATH");
  if (path == nullptr) path = "/bin:/usr/bin";
  if (base::may_be_filtered()) return true;
  for (char candidate[kPath];; ++path) {
    const size_t length = strcspn(path, ":");
    Writer out(candidate, sizeof candidate);
    if (length != 0) out.bytes(path, length).put('/');
    const bool fits = out.text(file).finish() == 0;
    if (fits && base::is_executable(candidate)) return takes_library(candidate);
    path += length;
    if (*path == '\0') return true;
  }
}

size_t room_without_library(char* const envp[]) {
  if (envp == nullptr) return 0;
  bool preloads = false;
  size_t room = sizeof(char*);
  for (char* const* entry = envp; *entry != nullptr; ++entry) {
    room += sizeof(char*);
    if (!is_preload(*entry)) continue;
    preloads = true;
    room += strlen(*entry) + 1;
  }
  return preloads && room <= kMostRoom ? room : 0;
}

char** without_library(char* const envp[], void* room) {
  auto** list = static_cast<char**>(room);
  size_t count = 0;
  while (envp[count] != nullptr) ++count;
  auto* text = reinterpret_cast<char*>(list + count + 1);
  size_t kept = 0;
  for (; *envp != nullptr; ++envp) {
    char* entry = *envp;
    if (is_preload(entry)) {
      const size_t size = strlen(entry) + 1;
      entry = preload_without_library(entry, text);
      text += size;
    }
    if (entry != nullptr) list[kept++] = entry;
  }
  list[kept] = nullptr;
  return list;
}

}  // namespace mtrace::life
