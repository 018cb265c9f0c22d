#include "surface/fleet/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "surface/fleet/remote.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/input.h"
#include "util/text.h"

namespace mtrace::fleet {
namespace {

namespace files = std::filesystem;

// Of a directory the files below it that may be reports.
std::vector<std::string> files_below(const std::string& path) {
  std::error_code error;
  if (!files::is_directory(path, error)) return {path};
  std::vector<std::string> found;
  for (auto item = files::recursive_directory_iterator(
           path, files::directory_options::skip_permission_denied, error);
       !error && item != files::recursive_directory_iterator(); item.increment(error)) {
    const std::string name = item->path().filename();
    std::error_code gone;
    if (util::is_report_name(name) && item->is_regular_file(gone)) found.push_back(item->path());
  }
  return found;
}

}  // namespace

std::vector<ReportFacts> LocalReports::look(const Complain& complain) {
  std::map<std::string, Known> seen;
  for (const std::string& path : paths_) {
    if (!files::exists(path)) {
      throw std::runtime_error(fmt::format("no file or directory {}", util::escaped(path, "")));
    }
    for (const std::string& file : files_below(path)) look_at(file, seen, complain);
  }
  known_ = std::move(seen);
  found_.clear();
  std::vector<ReportFacts> reports;
  for (const auto& [path, known] : known_) {
    if (!known.facts || known.facts->snapshot) continue;
    if (found_.emplace(known.facts->key.name(), path).second) reports.push_back(*known.facts);
  }
  std::stable_sort(
      reports.begin(), reports.end(),
      [](const ReportFacts& a, const ReportFacts& b) { return a.taken < b.taken; });
  return reports;
}

// A report that gets its names or is compressed meanwhile is another file.
void LocalReports::look_at(const std::string& path, std::map<std::string, Known>& seen,
                           const Complain& complain) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  if (const auto before = known_.find(path); before != known_.end()) {
    const Known& known = before->second;
    if (known.inode == state.st_ino && known.size == state.st_size &&
        known.changed.tv_sec == state.st_mtim.tv_sec &&
        known.changed.tv_nsec == state.st_mtim.tv_nsec) {
      seen[path] = known;
      return;
    }
  }
  Known& known = seen[path] = {state.st_ino, state.st_size, state.st_mtim, std::nullopt};
  try {
    known.facts = read_facts(path, util::escaped(path, ""));
  } catch (const util::FormatError& error) {
    complain(error.what());
  } catch (const util::FileError& error) {
    if (error.error_number() != ENOENT) complain(error.what());
  }
}

std::optional<std::string> LocalReports::packed(const ReportKey& key) {
  const auto found = found_.find(key.name());
  if (found == found_.end()) return std::nullopt;
  try {
    util::Text file = util::read_text(found->second);
    profile::Memlog memlog = profile::read(file.path, file.text);
    if (memlog.header.resolved == profile::Resolved::kNo) {
      resolver_.resolve(memlog);
      file.text = profile::write(memlog);
    }
    std::string out;
    util::compress(file.text, [&](std::string_view piece) { out += piece; });
    return out;
  } catch (const util::FileError& error) {
    if (error.error_number() != ENOENT) throw util::FormatError(found->second, 1, error.what());
    return std::nullopt;  // it was merged, or removed
  }
}

std::string Transferred::left_text() const {
  std::string out;
  if (held != 0) out += fmt::format("; {} there already", held);
  if (expired != 0) out += fmt::format("; {} older than is kept", expired);
  if (refused != 0) out += fmt::format("; {} left out", refused);
  return out;
}

void Copier::copy(Source& source, Transferred& done) {
  const auto refuse = [&](const std::string& why) {
    complain_(why);
    ++done.refused;
  };
  for (const ReportFacts& report : source.look(refuse)) {
    const std::string name = report.key.name();
    if (settled_.contains(name)) continue;
    ask(report.key.host());
    const auto merged = merged_.find(report.key.process);
    if (held_.contains(name) || (merged != merged_.end() && report.key.seq <= merged->second)) {
      ++done.held;
    } else if (report.taken <= expired_until_) {
      ++done.expired;
    } else if (!send(source, report, done)) {
      continue;
    }
    settled_.insert(name);
  }
}

void Copier::ask(const std::string& host) {
  if (asked_.contains(host)) return;
  const Target::Listing listing = target_.list(host);
  asked_.insert(host);
  expired_until_ = listing.expired_until;
  for (const ReportFacts& report : listing.reports) {
    held_.insert(report.key.name());
    if (report.merged) merged_[report.key.process] = report.key.seq;
  }
}

// Returns whether the report is done with.
bool Copier::send(Source& source, const ReportFacts& report, Transferred& done) {
  try {
    const auto bytes = source.packed(report.key);
    if (!bytes) return false;
    const Receipt receipt = target_.put(*bytes, report.key.name());
    if (receipt == Receipt::kHeld) ++done.held;
    if (receipt == Receipt::kExpired) ++done.expired;
    if (receipt != Receipt::kStored) return true;
    ++done.stored;
    done.bytes += bytes->size();
    return true;
  } catch (const ServerError& error) {
    if (error.kind() != ServerError::Kind::kReport) {
      asked_.clear();
      held_.clear();
      merged_.clear();
      throw;
    }
    complain_(error.what());
  } catch (const util::FormatError& error) {
    complain_(error.what());
  }
  ++done.refused;
  return true;
}

}  // namespace mtrace::fleet
