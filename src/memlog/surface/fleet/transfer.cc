#include "surface/fleet/transfer.h"

#include <vector>

#include "util/error.h"

namespace mtrace::fleet {
namespace {

void count(Receipt receipt, uint64_t bytes, Transferred& done) {
  if (receipt == Receipt::kHeld) ++done.held;
  if (receipt == Receipt::kExpired) ++done.expired;
  if (receipt != Receipt::kStored) return;
  ++done.stored;
  done.bytes += bytes;
}

void tell_faults(LocalReports& local, const Complain& complain, Transferred& done) {
  for (const std::string& fault : local.take_faults()) {
    complain(fault);
    ++done.refused;
  }
}

// Nothing: the file is gone, as when reports are merged, or damaged.
std::optional<std::string> pack(LocalReports& local, const LocalReport& report,
                                const Complain& complain, Transferred& done) {
  try {
    return local.packed(report);
  } catch (const util::FileError& error) {
    if (error.error_number() == ENOENT) return std::nullopt;
    complain(error.what());
  } catch (const util::FormatError& error) {
    complain(error.what());
  }
  ++done.refused;
  return std::nullopt;
}

// Counts a report that the store does not want.
bool is_wanted(const Store& store, const ReportKey& key, uint64_t taken, Transferred& done) {
  if (store.wants(key, taken)) return true;
  ++(taken <= store.expired_until() ? done.expired : done.held);
  return false;
}

}  // namespace

void Pusher::push(Transferred& done) {
  const std::vector<LocalReport> reports = local_.look();
  tell_faults(local_, complain_, done);
  for (const LocalReport& report : reports) {
    const ReportKey& key = report.facts.key;
    const std::string name = key.name();
    if (refused_.contains(name)) continue;
    auto host = hosts_.find(key.host());
    if (host == hosts_.end()) {
      const Remote::Listing listing = remote_.list(key.host());
      host = hosts_.emplace(key.host(), Host()).first;
      for (const ListedReport& one : listing.reports) host->second.held.add(one.key);
      host->second.expired_until = listing.expired_until;
    }
    const bool held = host->second.held.holds(key);
    if (held || report.facts.taken <= host->second.expired_until) {
      if (counted_.insert(name).second) count(held ? Receipt::kHeld : Receipt::kExpired, 0, done);
      continue;
    }
    send(report, host->second, done);
  }
}

void Pusher::send(const LocalReport& report, Host& host, Transferred& done) {
  const std::string name = report.facts.key.name();
  const size_t refused = done.refused;
  const auto bytes = pack(local_, report, complain_, done);
  if (!bytes) {
    if (done.refused != refused) refused_.insert(name);
    return;
  }
  try {
    const Receipt receipt = remote_.send(*bytes);
    count(receipt, bytes->size(), done);
    host.held.add(report.facts.key);
    counted_.insert(name);
  } catch (const ServerError& error) {
    if (error.kind() != ServerError::Kind::kReport) {
      hosts_.clear();
      throw;
    }
    complain_(error.what());
    ++done.refused;
    refused_.insert(name);
  }
}

void collect_local(LocalReports& local, Store& store, const Complain& complain, Transferred& done) {
  const std::vector<LocalReport> reports = local.look();
  tell_faults(local, complain, done);
  for (const LocalReport& report : reports) {
    if (!is_wanted(store, report.facts.key, report.facts.taken, done)) continue;
    const auto bytes = pack(local, report, complain, done);
    if (bytes) count(store.take(*bytes, report.path), bytes->size(), done);
  }
}

void collect_remote(Remote& remote, Store& store, const Complain& complain, Transferred& done) {
  for (const ListedReport& report : remote.list("").reports) {
    if (!is_wanted(store, report.key, report.taken, done)) continue;
    const std::string name = report.key.name();
    try {
      const std::string bytes = remote.read(report.key);
      count(store.take(bytes, name), bytes.size(), done);
    } catch (const util::FormatError& error) {
      complain(error.what());
      ++done.refused;
    }
  }
}

}  // namespace mtrace::fleet
