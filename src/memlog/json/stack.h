// Stacks and their frames as JSON: the same object in every answer.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyze/filter.h"
#include "analyze/table.h"
#include "json/answer.h"

namespace mtrace::json {

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
void put_left_out(Value& out, const analyze::LeftOut& left_out);

}  // namespace mtrace::json
