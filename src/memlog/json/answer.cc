#include "json/answer.h"

#include "format/escape.h"
#include "profile/text.h"

namespace mtrace::json {

Value answer(const char* view) { return {{"version", kVersion}, {"view", view}}; }

std::string list_begin(const char* view, const char* key) {
  std::string out = text(answer(view));
  out.resize(out.size() - 3);  // "\n}\n"
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
