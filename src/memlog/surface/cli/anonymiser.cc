#include "surface/cli/anonymiser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "format/event_log.h"
#include "format/memlog.h"
#include "format/timeline.h"
#include "model/events/column.h"
#include "model/events/event_log.h"
#include "model/profile/reader.h"
#include "model/profile/report_file.h"
#include "model/profile/timeline.h"
#include "model/profile/writer.h"
#include "model/recording/log_file.h"
#include "model/recording/log_writer.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/symbol_files.h"
#include "process/inspect/ledgers.h"
#include "surface/cli/report_options.h"
#include "util/error.h"
#include "util/file.h"
#include "util/input.h"
#include "util/text.h"

namespace mtrace::cli {
namespace {

// From the file of --key, which is made if it is not there.
util::HashKey read_key(const Arguments& arguments) {
  util::HashKey key;
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    throw util::FileError("no random key", errno);
  }
  const std::string path = arguments.value("--key");
  if (path.empty()) return key;
  const std::string hex =
      util::hex_bytes({reinterpret_cast<const char*>(key.data()), key.size()}) + '\n';
  const util::Descriptor made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made.get() >= 0) {
    if (!util::write_all(made.get(), hex)) throw util::FileError("cannot write " + path, errno);
    return key;
  }
  std::string text = util::read_file(path);
  if (text.ends_with('\n')) text.pop_back();
  const auto bytes = util::read_bytes(text);
  if (!bytes || bytes->size() != key.size()) {
    throw UsageError(
        fmt::format("{}: --key {}: is no key: 32 hex digits, as this option makes them",
                    arguments.command(), util::escaped(path, "")));
  }
  std::copy(bytes->begin(), bytes->end(), key.begin());
  return key;
}

profile::Pseudonyms read_names(const Arguments& arguments) {
  profile::Pseudonyms names(read_key(arguments));
  for (const std::string& text : arguments.values("--keep")) {
    const std::string patterns =
        std::filesystem::is_regular_file(text) ? util::read_file(text) : text;
    for (const std::string_view line : util::split(patterns, '\n')) {
      const std::string_view pattern = util::trimmed(line);
      if (pattern.empty() || pattern[0] == '#') continue;
      try {
        names.keep(std::string(pattern));
      } catch (const std::runtime_error& error) {
        throw UsageError(fmt::format("{}: --keep: {}", arguments.command(), error.what()));
      }
    }
  }
  return names;
}

// Returns the new name of a file of a program: that of "app-4711.2-1.memlog.zst" begins with
// another name. Empty: it is not named so.
std::string new_name(const std::string& path, const std::string& program,
                     profile::Pseudonyms& names) {
  static const re2::RE2 form(
      "(.+?)(-[0-9]+(?:\\.[0-9]+)?(?:-(?:[0-9]+|recovered|snapshot)(?:\\.[0-9]+)?)?"
      "\\.(?:memlog|memlog\\.zst|timeline|events|events\\.old[0-9]+))");
  std::string begin;
  std::string rest;
  if (!re2::RE2::FullMatch(util::base_name(path), form, &begin, &rest)) return "";
  // What an interpreter runs gives the file its name.
  const bool same = begin == util::base_name(program);
  return (same ? util::base_name(names.path(program)) : names.file(begin)) + rest;
}

}  // namespace

// The texts of an event log.
class Anonymiser::LogWording : public events::Wording {
 public:
  LogWording(profile::Pseudonyms& names, const events::EventHeader& header)
      : names_(names), header_(header) {}

  std::string head(std::string_view content) override {
    events::Column out;
    out.put_raw(content.substr(0, format::kEventMark));
    for (events::ColumnReader in(content.substr(format::kEventMark)); !in.empty();) {
      const std::string_view key = in.text();
      const std::string_view value = in.text();
      const std::string text = value_of(key, value);
      if (text.empty()) continue;
      out.put_text(key);
      out.put_text(text);
    }
    return std::string(out.bytes());
  }
  profile::Module module(profile::Module module) override {
    names_.module(module);
    return module;
  }
  std::string function(const profile::Module& module, std::string_view name) override {
    if (names_.keeps(module.path)) return std::string(name);
    return name.starts_with('<') ? names_.function(name) : names_.of('f', name);
  }
  std::string kind(std::string_view kind) override { return names_.kind(kind); }
  std::string call(std::string_view call) override { return names_.call(call); }
  std::string thread(std::string_view name) override { return names_.of('c', name); }

 private:
  // Empty: it is left out.
  std::string value_of(std::string_view key, std::string_view value) {
    if (key == format::kEventsProgram) return names_.path(value);
    if (key == format::kEventsCommand) return names_.command(value);
    if (key == format::kEventsLibrary) return names_.library(value);
    if (key == format::kEventsHost) return names_.of('h', value);
    if (key == format::kEventsBootId) return names_.boot_id(value);
    if (key == format::kEventsLeftOut) return names_.of('w', value);
    if (key == format::kEventsParentLog) {
      const std::string name = new_name(std::string(value), header_.program, names_);
      return name.empty() ? names_.of('p', value) : name;
    }
    for (const char* plain :
         {format::kEventsPid, format::kEventsParent, format::kEventsParentTime,
          format::kEventsParentFork, format::kEventsParentEvents, format::kEventsStarted,
          format::kEventsProcessStarted, format::kEventsBefore, format::kEventsForm,
          format::kEventsClock, format::kEventsProcessor}) {
      if (key == plain) return std::string(value);
    }
    return "";
  }

  profile::Pseudonyms& names_;
  const events::EventHeader& header_;
};

Anonymiser::Anonymiser(const Arguments& arguments, std::string directory)
    : directory_(std::move(directory)),
      map_(arguments.value("--map")),
      names_(read_names(arguments)),
      resolver_(search_path(arguments)) {}

void Anonymiser::add(const DataFile& file) {
  switch (file.kind) {
    case DataKind::kReport: {
      const util::Text text = util::read_text(file.path);
      return add_memlog(file.path, profile::read(file.path, text.text), text.compressed);
    }
    case DataKind::kLedger:
      return add_memlog(file.path, process::recovered_memlog(ledger::LedgerFile(file.path), ""),
                        false);
    case DataKind::kTimeline:
      return add_timeline(file.path);
    case DataKind::kEvents:
      return add_events(file.path);
  }
}

// Where the copy goes: `otherwise` follows the program's name if the file is not named as usual.
std::string Anonymiser::new_path(const std::string& path, const std::string& program,
                                 const std::string& otherwise) {
  const std::string name = new_name(path, program, names_);
  const std::string made =
      directory_ + (name.empty() ? util::base_name(names_.path(program)) + otherwise : name);
  if (::access(made.c_str(), F_OK) != 0) return made;
  throw std::runtime_error(
      fmt::format("{}: {} is there already", util::escaped(path, ""), util::escaped(made, "")));
}

void Anonymiser::add_memlog(const std::string& path, profile::Memlog memlog, bool compressed) {
  if (symbols::Symbolizer::is_needed(memlog)) resolver_.resolve(memlog);
  profile::anonymise(memlog, names_);
  const std::string text = profile::write(memlog);
  profile::read(memlog.name, text);  // nothing that cannot be read leaves this program
  const profile::Header& header = memlog.header;
  const bool by_memlog = header.trigger == "recovered" || header.trigger == "snapshot";
  const std::string otherwise =
      fmt::format("-{}-{}{}{}", header.pid, by_memlog ? header.trigger : std::to_string(header.seq),
                  format::kSuffix, compressed ? format::kCompressedSuffix : "");
  profile::write_report(new_path(path, header.program, otherwise), text, compressed);
}

void Anonymiser::add_timeline(const std::string& path) {
  profile::Timeline timeline = profile::read_timeline(path);
  const std::string made =
      new_path(path, timeline.program, fmt::format("-{}{}", timeline.pid, format::kTimelineSuffix));
  timeline.program = names_.path(timeline.program);
  util::replace_file(made, profile::write(timeline));
}

void Anonymiser::add_events(const std::string& path) {
  events::EventLog log(std::make_unique<events::FrameReader>(path));
  LogWording wording(names_, log.header());
  events::LogFile file(new_path(path, log.header().program,
                                fmt::format("-{}{}", log.header().pid, format::kEventsSuffix)),
                       "", 0);
  events::LogWriter writer(
      log, "", [&](std::string content) { file.append(std::move(content)); }, &wording);
  for (events::Event event; log.next(event);) {
    std::string text;
    if (!event.text.empty()) {
      text =
          event.kind == events::Kind::kReport ? names_.label(event.text) : names_.note(event.text);
      event.text = text;
    }
    writer.put(event);
  }
  writer.flush();
  if (const int error = file.finish()) throw util::FileError(file.path(), error);

  profile::Memlog stacks;
  stacks.modules = log.modules();
  for (uint32_t i = 1; i <= log.stack_count(); ++i) {
    stacks.entries.emplace_back().frames = profile::Frames(log.stack(i).frames);
  }
  resolver_.resolve(stacks);
  for (const profile::Entry& entry : stacks.entries) {
    for (const profile::Frame& frame : entry.frames) {
      if (frame.place != profile::Place::kModule || stacks.modules[frame.module].python) continue;
      profile::Module module = stacks.modules[frame.module];
      if (names_.module(module)) {
        kept_.emplace(module.path, module.build_id);
      } else if (!frame.function.empty()) {
        symbols_[{module.path, module.build_id}][frame.offset] =
            names_.function(frame.function.text());
      }
    }
  }
  if (log.missing().empty()) return;
  throw std::runtime_error(fmt::format("{}: {}", util::escaped(path, ""), log.missing()));
}

void Anonymiser::finish() {
  for (const auto& [module, names] : symbols_) {
    const std::string path =
        directory_ + kPackedSymbols +
        (module.second.empty() ? module.first : symbols::build_id_path(module.second));
    std::filesystem::create_directories(directory_ + kPackedSymbols + symbols::kBuildIds);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    symbols::add_made_symbols(path, module.second, names);
  }
  if (map_.empty()) return;
  std::string text;
  for (const auto& [name, original] : names_.made()) {
    text += fmt::format("{}\t{}\n", name, util::escaped(original, ""));
  }
  util::replace_file(map_, text);
}

}  // namespace mtrace::cli
