// What all JSON answers of memlog have in common; doc/json.md has the schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "util/json.h"

namespace mtrace::json {

// The version of the schema: goes up when a key changes its name or meaning, not when one is added.
inline constexpr int kVersion = 1;

// Returns the beginning of an answer: {"version": 1, "view": VIEW}.
Value answer(const char* view);

// For a list that is too large to hold: the text of an answer up to its only list, `key`, and the
// text after it. Print between them what text() returns for each element, parted by commas.
std::string list_begin(const char* view, const char* key);
std::string list_end();

// Escapes a text as in a memlog, so that any bytes survive as UTF-8.
std::string plain(const std::string& text);

// Adds `key` unless the value is unknown, empty or 0.
template <typename T>
void put_known(Value& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}
void put_text(Value& out, const char* key, const std::string& text);
void put_number(Value& out, const char* key, uint64_t number);

}  // namespace mtrace::json
