// What all JSON answers of memlog have in common; doc/json.md has the schema.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace mtrace::json {

// Keeps its keys in the order in which they were added.
using Value = nlohmann::ordered_json;

// The version of the schema: goes up when a key changes its name or meaning, not when one is added.
inline constexpr int kVersion = 1;

// Returns the beginning of an answer: {"version": 1, "view": VIEW}.
Value answer(const char* view);

// Returns an answer as text, ending with a newline. Bytes that are not UTF-8 become U+FFFD; names
// from memlogs have been escaped before and have none.
std::string text(const Value& value);
// Like text(), on one line.
std::string line(const Value& value);

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
