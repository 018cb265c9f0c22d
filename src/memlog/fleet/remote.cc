#include "fleet/remote.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "json/value.h"
#include "profile/text.h"

namespace mtrace::fleet {
namespace {

constexpr char kMemlogs[] = "/api/memlogs";
constexpr unsigned kTries = 4;
constexpr std::chrono::seconds kBusy{1};  // between two tries

// The server lets each address ask so and so often. Who asks too soon gets an answer, but may not
// see it: the connection is closed on what he is still sending.
bool is_busy(const HttpAnswer& answer) {
  return answer.status == 429 || answer.status == 503 || answer.ended;
}

std::string reason_in(const HttpAnswer& answer) {
  const auto body = json::Value::parse(answer.body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_string()) {
    return profile::escaped(body["error"].get<std::string>(), "");
  }
  return fmt::format("status {}", answer.status);
}

ServerError::Kind kind_of(const HttpAnswer& answer) {
  const int status = answer.status;
  if (answer.untrusted) return ServerError::Kind::kRefusal;
  if (status == 0 || status == 408 || status == 429 || status >= 500) {
    return ServerError::Kind::kPassing;
  }
  return status == 400 || status == 413 ? ServerError::Kind::kReport : ServerError::Kind::kRefusal;
}

}  // namespace

Remote::Remote(const HttpServerAddress& server, const std::string& token)
    : url_(server.origin + server.path), token_(token), client_(load_http_client(server)) {}

std::string Remote::ask(const std::string& method, const std::string& path, std::string_view body) {
  HttpHeaders headers;
  if (!token_.empty()) headers["Authorization"] = "Bearer " + token_;
  if (!body.empty()) headers["Content-Type"] = "application/zstd";
  HttpAnswer answer = client_->ask(method, path, headers, body);
  for (unsigned tries = 1; is_busy(answer) && tries < kTries; ++tries) {
    std::this_thread::sleep_for(kBusy);
    answer = client_->ask(method, path, headers, body);
  }
  if (answer.status == 200) return answer.body;
  throw ServerError(
      kind_of(answer),
      fmt::format("{}: {}", url_, answer.status == 0 ? answer.failure : reason_in(answer)));
}

Remote::Listing Remote::list(const std::string& host) {
  const auto body = json::Value::parse(
      ask("GET", host.empty() ? kMemlogs : fmt::format("{}?host={}", kMemlogs, host)), nullptr,
      false);
  Listing listing;
  try {
    listing.expired_until = body.at("expired_until").get<uint64_t>();
    for (const auto& one : body.at("memlogs")) {
      const auto key = read_name(one.at("name").get<std::string>());
      if (key) listing.reports.push_back({*key, one.at("taken_at").get<uint64_t>()});
    }
  } catch (const json::Value::exception&) {
    throw ServerError(ServerError::Kind::kRefusal,
                      url_ + ": the answer is not that of memlog serve: check the URL");
  }
  return listing;
}

std::string Remote::read(const ReportKey& key) {
  return ask("GET", fmt::format("{}/{}", kMemlogs, key.name()));
}

Receipt Remote::send(std::string_view bytes) {
  const auto body = json::Value::parse(ask("PUT", kMemlogs, bytes), nullptr, false);
  const std::string receipt = body.is_object() ? body.value("receipt", "") : "";
  for (const Receipt one : {Receipt::kStored, Receipt::kHeld, Receipt::kExpired}) {
    if (receipt == receipt_text(one)) return one;
  }
  throw ServerError(ServerError::Kind::kRefusal,
                    url_ + ": the answer is not that of memlog serve: check the URL");
}

}  // namespace mtrace::fleet
