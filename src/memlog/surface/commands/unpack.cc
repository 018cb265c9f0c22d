// memlog unpack: a directory from what memlog pack wrote.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "surface/cli/command.h"
#include "util/error.h"
#include "util/file.h"
#include "util/input.h"
#include "util/tar.h"
#include "util/text.h"
#include "view/text/quantity.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kUnpackHelp[] = R"(
Makes a directory of the files in an archive of memlog pack: DIR, or the name of the archive without
.tar.zst, in the current directory. Commands that read these files find the symbols that were packed
by themselves: they look in DIR/symbols, if it belongs to you or to root.

Writes only below DIR, follows no symbolic links there, and replaces no file without --force. An
archive that is cut short leaves the files that came before; those of a damaged one may be damaged.
)";

constexpr uint64_t kMostBytes = uint64_t{64} << 30;
constexpr uint64_t kMostFiles = 1'000'000;

using util::Descriptor;
using util::FileError;

// Opens a directory below another, and makes it if it is not there.
Descriptor directory_in(int parent, const std::string& name, const std::string& place) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
    throw FileError("cannot make " + place, errno);
  }
  Descriptor made(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (made.get() < 0) throw FileError("cannot write below " + place, errno);
  return made;
}

class Unpacking {
 public:
  Unpacking(std::string place, bool force, uint64_t most)
      : place_(std::move(place)), force_(force), most_(most) {
    if (::mkdir(place_.c_str(), 0700) != 0 && errno != EEXIST) {
      throw FileError("cannot make " + place_, errno);
    }
    top_ = Descriptor(::open(place_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (top_.get() < 0) throw FileError("cannot write below " + place_, errno);
  }

  // Throws TarError, DamagedCompression.
  void all(util::TarReader& archive) {
    for (util::TarFile file; archive.next(file); ++count_) {
      if (file.size > most_ - total_ || count_ == kMostFiles) {
        throw util::TarError(fmt::format(
            "has more than {} bytes or {} files; --max-size allows more bytes", most_, kMostFiles));
      }
      total_ += file.size;
      one(archive, file);
    }
  }

  size_t count() const { return count_; }

 private:
  void one(util::TarReader& archive, const util::TarFile& file) {
    const std::string path = place_ + '/' + file.name;
    Descriptor directory;
    int parent = top_.get();
    std::vector<std::string_view> parts = util::split(file.name, '/');
    const std::string name(parts.back());
    parts.pop_back();
    for (const std::string_view part : parts) {
      directory = directory_in(parent, std::string(part), path);
      parent = directory.get();
    }
    if (force_) ::unlinkat(parent, name.c_str(), 0);
    const Descriptor made(
        ::openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (made.get() < 0 && errno == EEXIST) {
      throw std::runtime_error(
          fmt::format("{} is there already; --force replaces it", util::escaped(path, "")));
    }
    if (made.get() < 0) throw FileError("cannot make " + path, errno);
    try {
      copy(archive, file, made.get(), path);
    } catch (...) {
      ::unlinkat(parent, name.c_str(), 0);
      throw;
    }
  }

  // Leaves holes where the file has zeros: a ledger is mostly these.
  static void copy(util::TarReader& archive, const util::TarFile& file, int to,
                   const std::string& path) {
    char buffer[65536];
    uint64_t at = 0;
    for (size_t got = 0; (got = archive.read(buffer, sizeof buffer)) != 0; at += got) {
      const bool zeros = std::all_of(buffer, buffer + got, [](char c) { return c == 0; });
      if (!zeros && !util::write_at(to, at, {buffer, got})) {
        throw FileError("cannot write " + path, errno);
      }
    }
    const timespec times[] = {file.changed, file.changed};
    if (::ftruncate(to, static_cast<off_t>(at)) != 0 || ::futimens(to, times) != 0) {
      throw FileError("cannot write " + path, errno);
    }
  }

  std::string place_;
  bool force_;
  uint64_t most_;
  Descriptor top_;
  uint64_t total_ = 0;  // bytes
  size_t count_ = 0;
};

std::string place_for(const Arguments& arguments) {
  std::string place = arguments.value("--output");
  if (!place.empty()) return place;
  place = util::base_name(arguments.operands()[0]);
  for (const std::string_view suffix : {".zst", ".tar"}) {
    if (place.ends_with(suffix)) place.resize(place.size() - suffix.size());
  }
  if (place != util::base_name(arguments.operands()[0])) return place;
  throw UsageError("unpack: give the directory with --output DIR");
}

int run_unpack(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 1) throw UsageError(arguments.lacking("give one archive"));
  uint64_t most = kMostBytes;
  if (arguments.has("--max-size")) {
    const auto size = text::read_size(arguments.value("--max-size"));
    if (!size) {
      throw UsageError(fmt::format("unpack: --max-size {} is not a size like 500M or 200G",
                                   arguments.value("--max-size")));
    }
    most = *size;
  }
  const std::string place = place_for(arguments);
  util::Input input(arguments.operands()[0]);
  const std::string name = util::escaped(input.path(), "");
  try {
    util::TarReader archive([&](char* to, size_t size) { return input.read(to, size); });
    Unpacking unpacking(place, arguments.has("--force"), most);
    unpacking.all(archive);
    print(streams, fmt::format("{}: {}\n", util::escaped(place, ""),
                               text::count_text(unpacking.count(), "file")));
    return kGood;
  } catch (const util::TarError& error) {
    complain(streams, fmt::format("{} {}", name, error.what()));
  } catch (const util::DamagedCompression& damage) {
    complain(streams, fmt::format("{}: {}", name, damage.what));
  }
  return kUnusable;
}

}  // namespace

const Command& unpack_command() {
  static const Command command = {
      {"unpack",
       "make a directory of an archive of memlog pack",
       "[--output DIR] [--force] [--max-size SIZE] ARCHIVE|-",
       kUnpackHelp,
       {{"--output", "-o", "DIR", "The directory. It may be there already."},
        {"--force", "", "", "Replace files that are there."},
        {"--max-size", "", "SIZE",
         "Refuse an archive of more bytes: 500M, 200G. The default is 64G."}},
       R"(0: done; 1: a file cannot be read or written, or is there already; 2: the archive is damaged,
       cut short or too large, or has a file that would lie outside of DIR; or the command line is
       wrong.)",
       R"(  memlog unpack app.tar.zst
  memlog show app
  memlog events app/app-4711.events
)"},
      run_unpack};
  return command;
}

}  // namespace mtrace::cli
