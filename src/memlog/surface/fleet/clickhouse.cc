#include "surface/fleet/clickhouse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "surface/fleet/remote.h"
#include "util/text.h"

namespace mtrace::fleet {
namespace {

constexpr std::string_view kPlain = "clickhouse://";
constexpr std::string_view kEncrypted = "clickhouses://";
// Too many queries, too little memory, too many parts to merge: may be otherwise later.
constexpr std::array kBusyCodes = {"Code: 202,", "Code: 241,", "Code: 252,"};

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += std::isalnum(byte) != 0 ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

}  // namespace

ClickHouseAddress read_clickhouse_url(const std::string& url) {
  const auto fail = [&]() -> ClickHouseAddress {
    throw std::runtime_error(fmt::format(
        "{} is not an address like clickhouse://127.0.0.1:8123/fleet", util::escaped(url, "")));
  };
  const bool encrypted = url.starts_with(kEncrypted);
  if (!encrypted && !url.starts_with(kPlain)) return fail();
  std::string rest = url.substr(encrypted ? kEncrypted.size() : kPlain.size());
  ClickHouseAddress address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  address.database = slash + 1 < rest.size() ? rest.substr(slash + 1) : "default";
  rest.resize(slash);
  if (const size_t at = rest.rfind('@'); at != std::string::npos) {
    address.user = rest.substr(0, at);
    rest.erase(0, at + 1);
  }
  // The colons of an IPv6 address are in brackets.
  if (rest.find(':', rest.find(']') == std::string::npos ? 0 : rest.find(']')) ==
      std::string::npos) {
    rest += encrypted ? ":8443" : ":8123";
  }
  if (rest.starts_with(':') || !is_word(address.database)) return fail();
  address.server = read_url((encrypted ? "https://" : "http://") + rest);
  return address;
}

ClickHouse::ClickHouse(const ClickHouseAddress& address, const std::string& password)
    : url_(fmt::format("{}/{}", address.server.origin, address.database)),
      target_(fmt::format("/?database={}&query=", address.database)),
      client_(load_http_client(address.server)) {
  if (!address.user.empty()) headers_["X-ClickHouse-User"] = address.user;
  if (!password.empty()) headers_["X-ClickHouse-Key"] = password;
}

std::string ClickHouse::ask(const std::string& statement, std::string_view rows) {
  const HttpAnswer answer =
      client_->ask("POST", target_ + percent_encoded(statement), headers_, rows);
  if (answer.status == 200) return answer.body;
  std::string why = answer.status == 0 ? answer.failure : answer.body;
  why = util::escaped(why.substr(0, why.find('\n')), "");
  const bool busy = std::any_of(kBusyCodes.begin(), kBusyCodes.end(),
                                [&](const char* code) { return why.starts_with(code); });
  const bool passing = !answer.untrusted && (answer.status == 0 || answer.status > 500 || busy);
  throw ServerError(passing ? ServerError::Kind::kPassing : ServerError::Kind::kRefusal,
                    fmt::format("{}: {}", url_, why));
}

}  // namespace mtrace::fleet
