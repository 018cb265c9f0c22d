#include "surface/serve/memlogs.h"

#include <limits>

#include "surface/serve/access.h"
#include "util/compression.h"
#include "util/error.h"
#include "view/json/stack.h"

namespace mtrace::serve {
namespace {

json::Value listed(const fleet::ReportKey& key, uint64_t taken) {
  return {{"name", key.name()}, {"taken_at", taken}};
}

Response answer(const json::Value& value) {
  Response response;
  response.body = json::line(value);
  return response;
}

Response packed(std::string bytes) {
  Response response;
  response.type = "application/zstd";
  response.body = std::move(bytes);
  return response;
}

}  // namespace

// Damaged files are not among them.
void Memlogs::look_at_local() {
  found_.clear();
  for (fleet::LocalReport& one : local_.look()) found_[one.facts.key.name()] = std::move(one);
  local_.take_faults();
}

// Looks again when the file has gone, as when it was compressed.
std::optional<std::string> Memlogs::packed_local(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const bool again : {false, true}) {
    if (again) look_at_local();
    const auto found = found_.find(name);
    if (found == found_.end()) continue;
    try {
      const std::lock_guard<std::mutex> names(names_);
      return local_.packed(found->second);
    } catch (const util::FileError&) {
      if (again) throw;
    }
  }
  return std::nullopt;
}

Response Memlogs::list(const Request& request) {
  const auto given = request.query.find("host");
  const std::string host = given == request.query.end() ? "" : given->second;
  json::Value out = json::answer("memlogs");
  out["expired_until"] = store_ == nullptr ? 0 : store_->expired_until();
  json::Value& memlogs = out["memlogs"] = json::Value::array();
  if (store_ != nullptr) {
    for (const auto& one : store_->list(host)) memlogs.push_back(listed(one.key, one.taken));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  look_at_local();
  for (const auto& [name, one] : found_) {
    if (!host.empty() && one.facts.key.host() != host) continue;
    memlogs.push_back(listed(one.facts.key, one.facts.taken));
  }
  return answer(out);
}

Response Memlogs::read(const Match& match) {
  const auto key = fleet::read_name(match.parts.at("host") + '/' + match.parts.at("name"));
  std::optional<std::string> bytes;
  if (key && store_ != nullptr) bytes = store_->read(*key);
  if (key && !bytes) bytes = packed_local(key->name());
  if (!bytes) return failure(404, "no such memlog: /api/memlogs lists them");
  return packed(std::move(*bytes));
}

Response Memlogs::append_log(const Request& request, const Match& match) {
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
  const auto size = logs_->append(name, static_cast<uint64_t>(at), bytes);
  if (!size) return failure(413, "the event log is larger than --max-disk");
  json::Value out = json::answer("log");
  out["size"] = *size;
  return answer(out);
}

Response Memlogs::receive(const Request& request) {
  fleet::Store::Incoming incoming(*store_);
  const int status = request.body([&](std::string_view part) { incoming.write(part); });
  if (status == 413) return failure(413, "the memlog is too large");
  if (status != 0) return failure(status, "the memlog was cut short");
  try {
    json::Value out = json::answer("receipt");
    const fleet::Receipt receipt = store_->admit(incoming, "the memlog");
    if (receipt == fleet::Receipt::kStored && arrival_names_) arrival_names_->add(incoming.key());
    out["receipt"] = fleet::receipt_text(receipt);
    return answer(out);
  } catch (const util::FormatError& error) {
    return failure(400, error.what());
  }
}

}  // namespace mtrace::serve
