// The text of an answer, declared over the JSON object that has its values.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "util/json.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns `form` with members of `object` in place of {key} or {key:unit}; {a.b} is a member of a
// member. What stands in [] is left out if a member in it is missing, null, false, 0 or empty.
//
// Units: "," digits with separators; "KiB" whole KiB of bytes; "size" bytes, "error" their standard
// error, " ± 4.0 KiB", "time" milliseconds as `style` has them; "s" milliseconds in seconds; "/1e6"
// divided, with one decimal; ".2" with so many decimals; "blocks" as blocks_text(); any other word
// counts: "1 stack", "2,000 stacks". "+" before a unit: with the sign.
// Of a list, the unit stands between its elements.
std::string filled(std::string_view form, const json::Value& object, const Style& style = {});

struct Column {
  std::string heading;
  std::string form;
};

// Returns a line of headings, if there is one, and a line for each object of `rows`; columns of
// numbers to the right. `below`: what to print after the row of this index.
std::string table(const std::vector<Column>& columns, const json::Value& rows,
                  const Style& style = {}, const std::function<std::string(size_t)>& below = {});

}  // namespace mtrace::text
