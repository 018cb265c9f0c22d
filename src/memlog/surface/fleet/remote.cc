#include "surface/fleet/remote.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "util/text.h"
#include "view/json/stack.h"

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
  const auto body = json::parse(answer.body);
  const json::Value* error = body ? body->find("error") : nullptr;
  const std::string* reason = error != nullptr ? error->as_text() : nullptr;
  return reason != nullptr ? util::escaped(*reason, "") : fmt::format("status {}", answer.status);
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

ServerError Remote::not_ours() const {
  return {ServerError::Kind::kRefusal,
          url_ + ": the answer is not that of memlog serve: check the URL"};
}

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
  const auto body =
      json::parse(ask("GET", host.empty() ? kMemlogs : fmt::format("{}?host={}", kMemlogs, host)));
  // The member, or the end.
  const auto member = [this](const json::Value& of, const char* key) -> const json::Value& {
    const json::Value* found = of.find(key);
    if (found == nullptr) throw not_ours();
    return *found;
  };
  const auto number = [&](const json::Value& of, const char* key) {
    const auto found = member(of, key).as_unsigned();
    if (!found) throw not_ours();
    return *found;
  };
  if (!body) throw not_ours();
  Listing listing;
  listing.expired_until = number(*body, "expired_until");
  for (const json::Value& one : member(*body, "memlogs").elements()) {
    const std::string* name = member(one, "name").as_text();
    if (name == nullptr) throw not_ours();
    const auto key = read_name(*name);
    if (key) listing.reports.push_back({*key, number(one, "taken_at")});
  }
  return listing;
}

std::string Remote::read(const ReportKey& key) {
  return ask("GET", fmt::format("{}/{}", kMemlogs, key.name()));
}

Receipt Remote::send(std::string_view bytes) {
  const auto body = json::parse(ask("PUT", kMemlogs, bytes));
  const json::Value* receipt = body ? body->find("receipt") : nullptr;
  const std::string* text = receipt != nullptr ? receipt->as_text() : nullptr;
  for (const Receipt one : {Receipt::kStored, Receipt::kHeld, Receipt::kExpired}) {
    if (text != nullptr && *text == receipt_text(one)) return one;
  }
  throw not_ours();
}

uint64_t Remote::append_log(const std::string& name, uint64_t at, std::string_view bytes) {
  const auto body = json::parse(ask("PUT", fmt::format("/api/logs/{}?at={}", name, at), bytes));
  const json::Value* size = body ? body->find("size") : nullptr;
  const auto number = size != nullptr ? size->as_unsigned() : std::nullopt;
  if (!number) throw not_ours();
  return *number;
}

}  // namespace mtrace::fleet
