// The tables fleet and stacks for ClickHouse.
#pragma once

#include "surface/fleet/remote.h"
#include "surface/sql/database.h"
#include "surface/sql/sources.h"
#include "util/prelude.h"

namespace mtrace::sql {

// Returns the statements that make the tables in ClickHouse, each with a semicolon.
std::string clickhouse_schema(const Tables& tables);

// Gives the rows of a table, "fleet" or "stacks", to `write`, as JSONEachRow reads them. Throws
// what reading the sources throws.
void write_rows(Database& database, const std::string& table,
                const std::function<void(const std::string&)>& write);

struct Loaded {
  size_t reports = 0;
  size_t rows = 0;
  size_t held = 0;      // reports that were there
  size_t left_out = 0;  // merged reports of which a part is there
};

// Inserts the reports that the server does not have, in batches, and makes the tables unless they
// exist. Asks the server what it has, entry for entry, before the first batch and after each error,
// so that a batch that was cut short is completed and none is inserted twice. Reads only reports
// that the server lacks. `wait` is called with the reason when the server does not answer, and
// returns when to try again, or throws. Throws fleet::ServerError, and what reading the sources
// throws.
Loaded load(Sources& sources, Database& database, fleet::ClickHouse& server,
            const std::function<void(const std::string&)>& wait);

}  // namespace mtrace::sql
