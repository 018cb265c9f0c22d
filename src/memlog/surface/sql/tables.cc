#include "surface/sql/tables.h"

#include "util/time.h"

namespace mtrace::sql {

Tables all_tables(const Data& data) {
  Tables tables;
  add_process_tables(tables, data);
  add_entry_table(tables, data);
  add_fleet_table(tables, data);
  add_stack_tables(tables, data);
  add_allocation_table(tables, data);
  add_event_tables(tables, data);
  add_time_tables(tables, data);
  return tables;
}
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86400 * kSecond;

}  // namespace

std::optional<int64_t> read_instant(std::string_view text) {
  constexpr size_t kDate = 10;  // YYYY-MM-DD
  if (text.size() <= kDate || (text[kDate] != 'T' && text[kDate] != ' ')) return std::nullopt;
  std::string_view rest = text.substr(kDate + 1);
  if (rest.ends_with('Z')) rest.remove_suffix(1);
  return util::read_instant(text.substr(0, kDate), rest);
}

std::optional<int64_t> read_instant(std::string_view text, int64_t near) {
  if (const auto since = util::read_time_of_day(text)) {
    return near / kDay * kDay + static_cast<int64_t>(*since);
  }
  return read_instant(text);
}

uint64_t nanoseconds_of(std::string_view text) {
  return static_cast<uint64_t>(read_instant(text).value_or(0));
}

std::string time_text(int64_t nanoseconds) {
  int64_t rest = nanoseconds % kSecond;
  if (rest < 0) rest += kSecond;
  return util::time_text((nanoseconds - rest) / kSecond, static_cast<uint64_t>(rest),
                         rest % 1000 == 0 ? 6 : 9);
}

}  // namespace mtrace::sql
