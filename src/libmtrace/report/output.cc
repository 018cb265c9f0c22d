#include "report/output.h"

#include <errno.h>

#include <cstring>

#include "base/file.h"
#include "base/process.h"
#include "base/writer.h"
#include "format/memlog.h"
#include "report/host.h"

namespace mtrace::report {
namespace {

constexpr unsigned kPlaces = 3;         // MTRACE_OUTPUT, $TMPDIR, /tmp
constexpr size_t kNameLimit = 200;      // bytes of a program's name that go into a file name
constexpr uint32_t kMostRuns = 100000;  // earlier processes of the same name and pid

char g_template[kPathCapacity];  // last component
// Directories as templates, without a slash at the end; empty: the root.
char g_directory[kPlaces][kPathCapacity];
bool g_present[kPlaces];
char g_instead[kPathCapacity];
char g_shown[kPathCapacity];  // the first one, as people write it
uint32_t g_run = 1;           // 2: "<pid>.2"
bool g_unnamed = true;        // files without a name can be given one

bool has(const char* text, char letter) {
  for (const char* p = strchr(text, '%'); p != nullptr && p[1] != '\0'; p = strchr(p + 2, '%')) {
    if (p[1] == letter) return true;
  }
  return false;
}

void strip_slashes(char* path) {
  for (size_t end = strlen(path); end > 0 && path[end - 1] == '/';) path[--end] = '\0';
}

// Writes a real path as a template, with its percent signs doubled.
void put_literally(Writer& out, const char* path) {
  for (; *path != '\0'; ++path) {
    out.put(*path);
    if (*path == '%') out.put('%');
  }
}

// Not present: a relative path without a known working directory (it was removed).
void set_first_directory(const char* path, size_t length) {
  const bool relative = length == 0 || path[0] != '/';
  g_present[0] = !relative || g_host.directory[0] != '\0';
  Writer pattern(g_directory[0], kPathCapacity);
  Writer shown(g_shown, sizeof g_shown);
  if (relative) {
    put_literally(pattern, g_host.directory);
    shown.text(g_host.directory);
    if (length != 0) pattern.put('/');
    if (length != 0) shown.put('/');
  }
  pattern.bytes(path, length).finish();
  shown.bytes(path, length).finish();
  strip_slashes(g_directory[0]);
  strip_slashes(g_shown);
}

void set_fallback(unsigned place, const char* path) {
  g_present[place] = path != nullptr && path[0] == '/';
  if (!g_present[place]) return;
  Writer pattern(g_directory[place], kPathCapacity);
  put_literally(pattern, path);
  pattern.finish();
  strip_slashes(g_directory[place]);
}

// The length of `text`, `length` bytes, without `suffix`.
size_t without_suffix(const char* text, size_t length, const char* suffix) {
  const size_t end = strlen(suffix);
  const bool has_it = length >= end && memcmp(text + length - end, suffix, end) == 0;
  return has_it ? length - end : length;
}

// The length of a report's name without .memlog or .memlog.zst; the whole length of any other.
size_t stem_length(const char* name) {
  const size_t whole = strlen(name);
  const size_t plain = without_suffix(name, whole, format::kCompressedSuffix);
  const size_t stem = without_suffix(name, plain, format::kSuffix);
  return stem != plain ? stem : whole;
}

void set_template(const char* wish) {
  const size_t length = stem_length(wish);
  Writer out(g_template, sizeof g_template);
  out.bytes(wish, length);
  if (!has(wish, 'p')) out.text("-%p");
  if (!has(wish, 'n')) out.text("-%n");
  out.text(format::kSuffix).finish();
}

// Whether an option that is no directory names a missing directory, not a file: it has a slash and
// no suffix of a report, and the directory above does not exist.
bool names_missing_directory(const char* option) {
  const char* slash = strrchr(option, '/');
  if (slash == nullptr || slash == option) return false;
  if (stem_length(option) != strlen(option)) return false;
  char parent[kPathCapacity];
  set_first_directory(option, slash - option);
  return Writer(parent, sizeof parent).text(g_shown).text("/.").finish() == 0 &&
         !sys::file_exists(parent);
}

void expand(Writer& out, const char* text, const OutputFile& file) {
  for (const char* p = text; *p != '\0'; ++p) {
    if (*p != '%' || p[1] == '\0') {
      out.put(*p);
      continue;
    }
    switch (*++p) {
      case 'e':
        out.bytes(g_host.name, strnlen(g_host.name, kNameLimit));
        break;
      case 'p':
        out.number(g_host.pid);
        if (g_run > 1) out.put('.').number(g_run);
        break;
      case 'n':
        out.number(file.seq);
        break;
      case 't':
        out.number(file.taken / 1'000'000'000u);
        break;
      case 'h':
        out.text(g_host.node);
        break;
      case '%':
        out.put('%');
        break;
      default:
        out.put('%').put(*p);
        break;
    }
  }
}

long expand_path(char* path, const OutputFile& file, const char* before, const char* after) {
  Writer out(path, kPathCapacity);
  expand(out, g_directory[file.place], file);
  out.put('/').text(before);
  expand(out, g_template, file);
  return out.text(after).finish() == 0 ? 0 : -ENAMETOOLONG;
}

long open_unnamed(const OutputFile& file) {
  char directory[kPathCapacity];
  Writer out(directory, sizeof directory);
  expand(out, g_directory[file.place], file);
  return out.put('/').finish() == 0 ? sys::create_unnamed_file(directory) : -ENAMETOOLONG;
}

// Another process may have the same pid (containers) and the same directory, so the name has the
// time in it, and a file that exists is left alone.
long open_temporary(OutputFile* file) {
  long result = -EEXIST;
  for (int attempt = 0; result == -EEXIST && attempt < 8; ++attempt) {
    char ending[32];
    Writer(ending, sizeof ending).put('.').hex(sys::monotonic_time()).text(".tmp").finish();
    result = expand_path(file->temporary, *file, ".", ending);
    if (result == 0) result = sys::create_file(file->temporary);
  }
  return result;
}

long open_in_place(OutputFile* file) {
  long result;
  do {
    result = expand_path(file->path, *file, "", "");
    if (result == 0) result = sys::create_file(file->path);
  } while (result == -EEXIST && g_run++ < kMostRuns);
  return result;
}

long open_in(OutputFile* file) {
  file->in_place = !sys::may_rename_files();
  file->temporary[0] = '\0';
  if (file->in_place) return open_in_place(file);
  const long result = g_unnamed ? open_unnamed(*file) : -EOPNOTSUPP;
  return result < 0 ? open_temporary(file) : result;
}

bool is_own(const OutputFile& file) { return sys::opened_identity(file.fd) == file.own; }

void close_own(const OutputFile& file) {
  if (is_own(file)) sys::close_file(file.fd);
}

long publish_unnamed(const OutputFile& file) {
  const long result = is_own(file) ? sys::name_file(file.fd, file.path) : -ESTALE;
  if (result == 0 || result == -EEXIST || result == -ESTALE) return result;
  g_unnamed = false;
  return -EAGAIN;
}

// Whether an earlier process of the same pid had a report of this name, which the resolver has
// compressed since. The new report could not be compressed.
bool was_compressed(const OutputFile& file) {
  char path[kPathCapacity];
  return Writer(path, sizeof path).text(file.path).text(format::kCompressedSuffix).finish() == 0 &&
         sys::file_exists(path);
}

}  // namespace

void set_output(const char* option, const char* fallback) {
  const size_t length = strlen(option);
  bool is_directory = length == 0 || option[length - 1] == '/' || strcmp(option, ".") == 0;
  if (!is_directory && strchr(option, '%') == nullptr) {
    char probe[kPathCapacity];
    set_first_directory(option, length);
    is_directory = Writer(probe, sizeof probe).text(g_shown).text("/.").finish() == 0 &&
                   sys::file_exists(probe);
    is_directory = is_directory || names_missing_directory(option);
  }
  const char* slash = strrchr(option, '/');
  if (is_directory) {
    set_first_directory(option, strcmp(option, ".") == 0 ? 0 : length);
    set_template("%e-%p-%n");
  } else if (slash == nullptr) {
    set_first_directory("", 0);
    set_template(option);
  } else {
    set_first_directory(option, slash - option + (slash == option ? 1 : 0));
    set_template(slash + 1);
  }
  set_fallback(1, fallback);
  set_fallback(2, "/tmp");
}

const char* output_directory() { return g_shown[0] != '\0' ? g_shown : "/"; }

OutputCheck check_output(uint64_t now) {
  OutputFile file;
  file.seq = 1;
  file.taken = now;
  OutputCheck check = {-ENOENT, nullptr};
  for (file.place = 0; file.place < kPlaces; ++file.place) {
    if (!g_present[file.place]) continue;
    Writer out(g_instead, sizeof g_instead);
    expand(out, g_directory[file.place], file);
    const long error = out.finish() == 0 ? sys::directory_error(g_instead) : -ENAMETOOLONG;
    if (file.place == 0) check.error = error;
    if (error == 0) {
      check.instead = g_instead[0] != '\0' ? g_instead : "/";
      break;
    }
  }
  return check;
}

long open_output(OutputFile* file, unsigned place, uint32_t seq, uint64_t taken) {
  file->seq = seq;
  file->taken = taken;
  long first_error = 0;
  for (file->place = place; file->place < kPlaces; ++file->place) {
    if (!g_present[file->place]) continue;
    const long result = open_in(file);
    if (result >= 0) {
      file->fd = static_cast<int>(result);
      file->own = sys::opened_identity(file->fd);
      return 0;
    }
    if (first_error == 0) first_error = result;
  }
  return first_error != 0 ? first_error : -ENOENT;
}

long publish_output(OutputFile* file) {
  if (file->in_place) {
    close_own(*file);
    return 0;
  }
  const bool named = file->temporary[0] != '\0';
  if (named) close_own(*file);
  long result;
  for (;;) {
    result = expand_path(file->path, *file, "", "");
    if (result == 0 && was_compressed(*file)) result = -EEXIST;
    if (result == 0) {
      result = named ? sys::publish(file->temporary, file->path) : publish_unnamed(*file);
    }
    if (result != -EEXIST || g_run >= kMostRuns) break;
    ++g_run;
  }
  if (!named) close_own(*file);
  if (named && result != 0) sys::remove_file(file->temporary);
  return result;
}

void discard_output(OutputFile* file) {
  close_own(*file);
  if (file->temporary[0] != '\0') sys::remove_file(file->temporary);
}

void reset_output() { g_run = 1; }

}  // namespace mtrace::report
