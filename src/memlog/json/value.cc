#include "json/value.h"

#include "format/escape.h"
#include "profile/text.h"

namespace mtrace::json {

Value answer(const char* view) { return {{"version", kVersion}, {"view", view}}; }

std::string text(const Value& value) {
  return value.dump(1, ' ', false, Value::error_handler_t::replace) + '\n';
}

std::string line(const Value& value) {
  return value.dump(-1, ' ', false, Value::error_handler_t::replace) + '\n';
}

std::string list_begin(const char* view, const char* key) {
  std::string out = answer(view).dump(1);
  out.resize(out.size() - 2);  // "\n}"
  return out + ",\n \"" + key + "\": [\n";
}

std::string list_end() { return "]\n}\n"; }

std::string plain(const std::string& text) { return profile::escaped(text, format::kReservedNone); }

void put_text(Value& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

void put_number(Value& out, const char* key, uint64_t number) {
  if (number != 0) out[key] = number;
}

}  // namespace mtrace::json
