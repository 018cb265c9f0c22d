// memlog anonymise: data that may be shown to others.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "surface/cli/anonymiser.h"
#include "surface/cli/command.h"
#include "surface/cli/data_files.h"
#include "surface/cli/report_options.h"
#include "util/error.h"
#include "util/text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kAnonymiseHelp[] = R"(
Writes copies of reports, event logs and timelines to DIR in which pseudonyms stand for functions,
source files, paths, command lines, labels, notes, hosts and names of threads. A pseudonym is a keyed
hash: f_3a91c07b2e54. The same name has the same pseudonym in all files of a run, and with --key in
all runs, so that copies can be compared. Names are looked up first. FILE may be a directory; without
FILE: that of MTRACE_OUTPUT, else the current one.

Libraries of the distribution (libc.so.6, libstdc++, libpython, Python's own modules and some
hundred more, in /usr/lib and /lib) and their functions stay readable, as do functions of the C++
library that were compiled into a program: std::vector<t_5d0c2b7a9e11>::push_back. Of a file's name the
suffix of a source file or library stays, such as .cc. Numbers stay: sizes, counts, times, pids, source
lines, offsets. So who has the same program can find its functions by their offsets.

A ledger becomes the report that memlog recover makes of it. For an event log, which has no room for
names, DIR/symbols gets them; take it along.
)";

int run_anonymise(const Arguments& arguments, const Streams& streams) {
  std::string directory = arguments.value("--output");
  if (directory.empty()) throw UsageError("anonymise: give the directory with --output DIR");
  const std::vector<DataFile> files = data_files(arguments);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    throw util::FileError("cannot make " + directory, errno);
  }
  if (!directory.ends_with('/')) directory += '/';
  Anonymiser anonymiser(arguments, directory);
  int status = kGood;
  size_t count = 0;
  for (const DataFile& file : files) {
    try {
      anonymiser.add(file);
      ++count;
    } catch (const util::FileError& error) {
      complain(streams, error.what());
      status = std::max(status, kFailed);
    } catch (const std::runtime_error& error) {
      complain(streams, error.what());
      status = kUnusable;
    }
  }
  anonymiser.finish();
  print(streams,
        fmt::format("{}: {}\n", util::escaped(directory, ""), text::count_text(count, "file")));
  return status;
}

}  // namespace

const Command& anonymise_command() {
  static const Command command = {
      {"anonymise",
       "copy data with pseudonyms for all names that tell of a program",
       "[OPTION]... --output DIR [FILE|DIR]...",
       kAnonymiseHelp,
       {{"--output", "-o", "DIR", "Where the copies go. Replaces no file."},
        kKeyOption,
        kKeepOption,
        kMapOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: done; 1: a file cannot be read or written; 2: a file is damaged, or its copy is there
       already, or the command line is wrong. Of a damaged file there is no copy, or of an event log
       one without what is damaged.)",
       R"(  memlog anonymise --key ~/memlog.key --map names.txt -o for_vendor reports
  memlog anonymise --keep libvendor -o for_vendor app-4711-1.memlog app-4711-2.memlog
)"},
      run_anonymise};
  return command;
}

}  // namespace mtrace::cli
