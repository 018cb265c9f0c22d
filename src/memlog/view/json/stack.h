// Stacks and their frames as JSON: the same object in every answer.
#pragma once

#include "format/ledger.h"
#include "util/json.h"
#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/analyze/table.h"

namespace mtrace::json {

// What all JSON answers of memlog have in common; doc/json.md has the schema.

// The version of the schema: goes up when a key changes its name or meaning, not when one is added.
inline constexpr int kVersion = 1;

// Returns the beginning of an answer: {"version": 1, "view": VIEW}.
Value answer(const char* view);
// Likewise about a process, with "pid", "name", and "incomplete" unless `whole`: all of its live
// blocks could be read.
Value answer(const char* view, const format::LedgerHeader& header, bool whole);

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

// Returns {"function", "file", "line", "module", "offset"}, as far as known; {"inlined": true} in
// place of the module for an inlined function, {"address"} for code outside all modules;
// {"guessed": true} where a frame pointer led to the frame.
Value frame(const analyze::Table& table, const profile::Frame& frame);

// Adds "frames", innermost first, and "cut" if the stack ends at the depth.
void put_frames(Value& out, const analyze::Table& table, const analyze::Row& row);

// Adds a row's numbers: "bytes", "blocks" and what else is not 0.
void put_numbers(Value& out, const analyze::Row& row);

// Returns the object of a row: id, kind, numbers, frames.
Value stack(const analyze::Table& table, const analyze::Row& row);

// Returns the first `limit` rows (0: all) of each kind.
Value stacks(const analyze::Table& table, size_t limit);

// Returns each row of `table` as a line.
std::string lines(const analyze::Table& table);

Value total(const profile::Total& total);
Value modules(const std::vector<profile::Module>& modules);

// Adds "left_out" with the stacks that filters reject, if there are any.
void put_left_out(Value& out, const analyze::FilteredOut& left_out);

}  // namespace mtrace::json
