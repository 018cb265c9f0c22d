// The memlogs that memlog serve gives to other machines and takes from them.

#include "surface/serve/site.h"
#include "util/compression.h"
#include "util/error.h"
#include "view/json/stack.h"

namespace mtrace::serve {

// Damaged files are not among them.
Response Site::list_memlogs(const Request& request, const Match& /*match*/) {
  const auto given = request.query.find("host");
  const std::string host = given == request.query.end() ? "" : given->second;
  fleet::Target::Listing all;
  if (options_.store != nullptr) all = options_.store->list(host);
  const std::lock_guard<std::mutex> lock(local_mutex_);
  for (const fleet::ReportFacts& one : local_.look([](const std::string&) {})) {
    if (host.empty() || one.key.host() == host) all.reports.push_back(one);
  }
  json::Value out = json::answer("memlogs");
  out["expired_until"] = all.expired_until;
  json::Value& memlogs = out["memlogs"] = json::Value::array();
  for (const fleet::ReportFacts& one : all.reports) {
    json::Value report = {{"name", one.key.name()}, {"taken_at", one.taken}};
    if (one.merged) report["merged"] = true;
    memlogs.push_back(std::move(report));
  }
  return answer_with(json::line(out));
}

Response Site::memlog(const Request& /*request*/, const Match& match) {
  const auto key = fleet::read_name(match.parts.at("host") + '/' + match.parts.at("name"));
  std::optional<std::string> bytes;
  if (key && options_.store != nullptr) bytes = options_.store->read(*key);
  const std::lock_guard<std::mutex> lock(local_mutex_);
  // A file that has gone, as when it was compressed, is looked for once more.
  for (const bool again : {false, true}) {
    if (!key || bytes) break;
    if (again) local_.look([](const std::string&) {});
    const std::lock_guard<std::mutex> names(names_mutex_);
    bytes = local_.packed(*key);
  }
  if (!bytes) return failure(404, "no such memlog: /api/memlogs lists them");
  return answer_with(std::move(*bytes), "application/zstd");
}

Response Site::append_log(const Request& request, const Match& match) {
  constexpr size_t kMostPart = 8 << 20;
  const std::string name = match.parts.at("host") + '/' + match.parts.at("name");
  const long at = number_of(request.query, "at", 0, 0, std::numeric_limits<long>::max());
  std::string bytes;
  bool large = false;
  const int status = request.body([&](std::string_view part) {
    large = large || part.size() > kMostPart - bytes.size();
    if (!large) bytes += part;
  });
  if (large || status == 413) return failure(413, "the part of the event log is too large");
  if (status != 0) return failure(status, "the part of the event log was cut short");
  if (!fleet::is_event_log_name(name)) return failure(400, "not the name of an event log");
  if (at == 0 && !bytes.empty() && !util::is_compressed(bytes)) {
    return failure(400, "not the beginning of an event log");
  }
  const auto size = options_.store->append(name, static_cast<uint64_t>(at), bytes);
  if (!size) return failure(413, "the event log is larger than --max-disk");
  json::Value out = json::answer("log");
  out["size"] = *size;
  return answer_with(json::line(out));
}

Response Site::receive(const Request& request, const Match& /*match*/) {
  fleet::Store::Incoming incoming(*options_.store);
  const int status = request.body([&](std::string_view part) { incoming.write(part); });
  if (status == 413) return failure(413, "the memlog is too large");
  if (status != 0) return failure(status, "the memlog was cut short");
  try {
    json::Value out = json::answer("receipt");
    out["receipt"] = fleet::receipt_text(options_.store->admit(incoming, "the memlog"));
    return answer_with(json::line(out));
  } catch (const util::FormatError& error) {
    return failure(400, error.what());
  }
}

}  // namespace mtrace::serve
