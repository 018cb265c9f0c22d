#include "view/export/csv.h"

#include <fmt/format.h>

#include "format/memlog.h"
#include "model/profile/writer.h"
#include "util/text.h"

namespace mtrace::exporting {
namespace {

std::string csv_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// Several functions are separated by commas.
std::string quoted_list(const std::string& calls) {
  return calls.find_first_of(",\"\r\n") == std::string::npos ? calls : csv_quoted(calls);
}

std::string stack_text(const analyze::Table& table, const analyze::Row& row) {
  std::string out;
  for (const profile::Frame& frame : row.frames) {
    if (!out.empty()) out += " < ";
    out += frame.function.empty() ? profile::place(table.names(), frame)
                                  : util::escaped(frame.function, "");
    if (!frame.source.empty()) out += ' ' + util::escaped(frame.source, "");
  }
  if (row.cut) out += fmt::format("{}{}", out.empty() ? "" : " < ", format::kCutLine);
  return out;
}

}  // namespace

std::string csv(const analyze::Table& table) { return csv_titles() + csv_rows(table); }

std::string csv_titles() {
  return "kind,bytes,blocks,live,allocs,allocated,frees,freed,temporary,short_lived,lifetime_min,"
         "lifetime_mean,lifetime_max,age,slack,peak,call,stack,frames\n";
}

std::string csv_rows(const analyze::Table& table) {
  std::string out;
  for (const analyze::Row& row : table.rows()) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:016x},{}\n", row.kind,
                       row.bytes, row.blocks, row.live ? std::to_string(*row.live) : "",
                       row.allocations, row.allocated_bytes, row.frees, row.freed_bytes,
                       row.temporary, row.short_lived, row.lifetimes.least, row.lifetimes.mean(),
                       row.lifetimes.most, row.age, row.slack, row.peak, quoted_list(row.call),
                       row.stack, csv_quoted(stack_text(table, row)));
  }
  return out;
}

}  // namespace mtrace::exporting
