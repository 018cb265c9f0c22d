#include "report/output.h"

#include <errno.h>

#include <cstring>
#include <string_view>

#include "base/file.h"
#include "base/process.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "format/memlog.h"
#include "report/host.h"

namespace mtrace::report {
namespace {

constexpr unsigned kPlaces = 3;         // MTRACE_OUTPUT, $TMPDIR, /tmp
constexpr uint32_t kMostRuns = 100000;  // earlier processes of the same name and pid

// A directory, without a slash at the end; empty: the root.
struct Place {
  bool present;
  char base[kPathCapacity];
};
Place g_places[kPlaces];
char g_pattern[kPathCapacity];  // a template behind the first one's base
char g_template[1024];          // last component; a cut one expands to a name that is too long
char g_shown[kPathCapacity];    // the first directory, as people write it
uint32_t g_run = 1;             // 2: "<pid>.2"
bool g_unnamed = true;          // files without a name can be given one

bool has(const char* text, char letter) {
  for (const char* p = strchr(text, '%'); p != nullptr && p[1] != '\0'; p = strchr(p + 2, '%')) {
    if (p[1] == letter) return true;
  }
  return false;
}

void strip_slashes(char* path) {
  for (size_t end = strlen(path); end > 0 && path[end - 1] == '/';) path[--end] = '\0';
}

void set_first_directory(const char* path, size_t length) {
  const bool relative = length == 0 || path[0] != '/';
  Place& place = g_places[0];
  // Without a known working directory (it was removed) a relative path leads nowhere.
  place.present = !relative || g_host.directory[0] != '\0';
  Writer(place.base, kPathCapacity).text(relative ? g_host.directory : "").finish();
  Writer(g_pattern, kPathCapacity).text(relative ? "/" : "").bytes(path, length).finish();
  strip_slashes(place.base);
  strip_slashes(g_pattern);
  Writer(g_shown, sizeof g_shown).text(place.base).text(g_pattern).finish();
}

void set_fallback(Place& place, const char* path) {
  place.present = path != nullptr && path[0] == '/';
  if (!place.present) return;
  Writer(place.base, kPathCapacity).text(path).finish();
  strip_slashes(place.base);
}

// The length of a report's name without .memlog or .memlog.zst; the whole length of any other.
size_t stem_length(std::string_view name) {
  std::string_view stem = name;
  if (stem.ends_with(format::kCompressedSuffix)) {
    stem.remove_suffix(strlen(format::kCompressedSuffix));
  }
  return stem.ends_with(format::kSuffix) ? stem.size() - strlen(format::kSuffix) : name.size();
}

void set_template(const char* wish) {
  const size_t length = stem_length(wish);
  Writer out(g_template, sizeof g_template);
  out.bytes(wish, length);
  if (!has(wish, 'p')) out.text("-%p");
  if (!has(wish, 'n')) out.text("-%n");
  out.text(format::kSuffix).finish();
}

// Makes it the first directory. False: there is no such directory.
bool try_directory(const char* path, size_t length) {
  set_first_directory(path, length);
  return base::is_directory(output_directory());
}

// Whether MTRACE_OUTPUT means a directory.
bool names_directory(const char* option, size_t length) {
  if (length == 0 || option[length - 1] == '/') return true;
  if (strchr(option, '%') != nullptr) return false;
  if (try_directory(option, length)) return true;
  // A missing one: it has no suffix of a report, and what is before its last slash is missing, too.
  const char* slash = strrchr(option, '/');
  return slash != nullptr && slash != option && stem_length(option) == length &&
         !try_directory(option, slash - option);
}

void expand(Writer& out, const char* text, const OutputFile& file) {
  for (const char* p = text; *p != '\0'; ++p) {
    if (*p != '%' || p[1] == '\0') {
      out.put(*p);
      continue;
    }
    switch (*++p) {
      case 'e':
        out.bytes(base::g_table_header->name, strnlen(base::g_table_header->name, kNameLimit));
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
        out.text(base::g_table_header->node);
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

void expand_directory(Writer& out, const OutputFile& file) {
  expand(out.text(g_places[file.place].base), file.place == 0 ? g_pattern : "", file);
}

long expand_path(char* path, const OutputFile& file, const char* before, const char* after) {
  Writer out(path, kPathCapacity);
  expand_directory(out, file);
  out.put('/').text(before);
  expand(out, g_template, file);
  return out.text(after).finish() == 0 ? 0 : -ENAMETOOLONG;
}

long open_unnamed(const OutputFile& file) {
  char directory[kPathCapacity];
  Writer out(directory, sizeof directory);
  expand_directory(out, file);
  return out.put('/').finish() == 0 ? base::create_unnamed_file(directory) : -ENAMETOOLONG;
}

// Another process may have the same pid (containers) and the same directory, so the name has the
// time in it, and a file that exists is left alone.
long open_temporary(OutputFile* file) {
  long result = -EEXIST;
  for (int attempt = 0; result == -EEXIST && attempt < 8; ++attempt) {
    char ending[32];
    Writer(ending, sizeof ending).put('.').hex(base::monotonic_time()).text(".tmp").finish();
    result = expand_path(file->temporary, *file, ".", ending);
    if (result == 0) result = base::create_file(file->temporary);
  }
  return result;
}

long open_in_place(OutputFile* file) {
  long result;
  do {
    result = expand_path(file->path, *file, "", "");
    if (result == 0) result = base::create_file(file->path);
  } while (result == -EEXIST && g_run++ < kMostRuns);
  return result;
}

long open_in(OutputFile* file) {
  file->in_place = !base::may_rename_files();
  file->temporary[0] = '\0';
  if (file->in_place) return open_in_place(file);
  const long result = g_unnamed ? open_unnamed(*file) : -EOPNOTSUPP;
  return result < 0 ? open_temporary(file) : result;
}

bool is_own(const OutputFile& file) { return base::opened_identity(file.fd) == file.own; }

void close_own(const OutputFile& file) {
  if (is_own(file)) base::close_file(file.fd);
}

long publish_unnamed(const OutputFile& file) {
  const long result = is_own(file) ? base::name_file(file.fd, file.path) : -ESTALE;
  if (result == 0 || result == -EEXIST || result == -ESTALE) return result;
  g_unnamed = false;
  return -EAGAIN;
}

// Whether an earlier process of the same pid had a report of this name, which the resolver has
// compressed since. The new report could not be compressed.
bool was_compressed(const OutputFile& file) {
  char path[kPathCapacity];
  return Writer(path, sizeof path).text(file.path).text(format::kCompressedSuffix).finish() == 0 &&
         base::file_identity(path) != base::FileIdentity{};
}

}  // namespace

void set_output(const char* option, const char* fallback) {
  if (strcmp(option, ".") == 0) option = "";
  const size_t length = strlen(option);
  const char* slash = strrchr(option, '/');
  if (names_directory(option, length)) {
    set_first_directory(option, length);
    set_template("%e-%p-%n");
  } else if (slash == nullptr) {
    set_first_directory("", 0);
    set_template(option);
  } else {
    set_first_directory(option, slash - option + (slash == option ? 1 : 0));
    set_template(slash + 1);
  }
  set_fallback(g_places[1], fallback);
  set_fallback(g_places[2], "/tmp");
}

const char* output_directory() { return g_shown[0] != '\0' ? g_shown : "/"; }

long check_output(uint64_t now, char (&instead)[kPathCapacity]) {
  OutputFile file;
  file.seq = 1;
  file.taken = now;
  long first_error = -ENOENT;
  for (file.place = 0; file.place < kPlaces; ++file.place) {
    if (!g_places[file.place].present) continue;
    Writer out(instead, sizeof instead);
    expand_directory(out, file);
    const long error = out.finish() == 0 ? base::directory_error(instead) : -ENAMETOOLONG;
    if (file.place == 0) first_error = error;
    if (error != 0) continue;
    if (instead[0] == '\0') memcpy(instead, "/", 2);
    return first_error;
  }
  instead[0] = '\0';
  return first_error;
}

long open_output(OutputFile* file, unsigned place, uint32_t seq, uint64_t taken) {
  file->seq = seq;
  file->taken = taken;
  long first_error = 0;
  for (file->place = place; file->place < kPlaces; ++file->place) {
    if (!g_places[file->place].present) continue;
    const long result = open_in(file);
    if (result >= 0) {
      file->fd = static_cast<int>(result);
      file->own = base::opened_identity(file->fd);
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
      result = named ? base::publish(file->temporary, file->path) : publish_unnamed(*file);
    }
    if (result != -EEXIST || g_run >= kMostRuns) break;
    ++g_run;
  }
  if (!named) close_own(*file);
  if (named && result != 0) base::remove_file(file->temporary);
  return result;
}

void discard_output(OutputFile* file) {
  close_own(*file);
  if (file->temporary[0] != '\0') base::remove_file(file->temporary);
}

void reset_output() { g_run = 1; }

}  // namespace mtrace::report
