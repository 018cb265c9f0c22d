#include "surface/sql/virtual_table.h"

#include <sqlite3.h>

#include "model/events/event_log.h"

namespace mtrace::sql {
namespace {

using Is = Constraint::Is;

struct ModuleData {
  Table* table;
  std::exception_ptr* failure;
};

struct OpenTable : sqlite3_vtab {
  ModuleData known;
};

struct OpenCursor : sqlite3_vtab_cursor {
  std::unique_ptr<Cursor> rows;
  int64_t number = 0;
};

OpenTable& table_of(sqlite3_vtab* base) { return *static_cast<OpenTable*>(base); }
OpenCursor& cursor_of(sqlite3_vtab_cursor* base) { return *static_cast<OpenCursor*>(base); }

// No exception may pass through SQLite's frames.
template <typename Action>
int guarded(sqlite3_vtab* base, Action action) {
  try {
    action();
    return SQLITE_OK;
  } catch (const Interrupted&) {
    return SQLITE_INTERRUPT;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception& error) {
    *table_of(base).known.failure = std::current_exception();
    sqlite3_free(base->zErrMsg);
    base->zErrMsg = sqlite3_mprintf("%s", error.what());
    return SQLITE_ERROR;
  }
}

int connect(sqlite3* connection, void* data, int, const char* const*, sqlite3_vtab** out,
            char** error) {
  const ModuleData known = *static_cast<ModuleData*>(data);
  const int result = sqlite3_declare_vtab(connection, known.table->declaration().c_str());
  if (result != SQLITE_OK) {
    *error = sqlite3_mprintf("%s", sqlite3_errmsg(connection));
    return result;
  }
  auto* table = new (std::nothrow) OpenTable();
  if (table == nullptr) return SQLITE_NOMEM;
  table->known = known;
  *out = table;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete &table_of(table);
  return SQLITE_OK;
}

std::optional<Is> is_of(int operation) {
  switch (operation) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
    case SQLITE_INDEX_CONSTRAINT_IS:
      return Is::kEqual;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return Is::kLess;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return Is::kAtMost;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return Is::kGreater;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return Is::kAtLeast;
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
      return Is::kNull;
    default:
      return std::nullopt;
  }
}

// The plan of a loop is a text: for each argument of filter() the column and what is asked of it.
int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  const Table& table = *table_of(base).known.table;
  std::string plan;
  int arguments = 0;
  double rows = table.rows;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    const auto is = is_of(constraint.op);
    if (!constraint.usable || !is || constraint.iColumn < 0) continue;
    const Column& column = table.columns[static_cast<size_t>(constraint.iColumn)];
    if (column.selects == 0) continue;
    // Under another collation other texts are equal.
    if (column.type == Type::kText &&
        (*is != Is::kEqual || std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY")) {
      continue;
    }
    info->aConstraintUsage[i].argvIndex = ++arguments;
    plan += fmt::format("{} {} ", constraint.iColumn, static_cast<int>(*is));
    rows *= *is == Is::kEqual ? column.selects : 0.3;
  }
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  if (info->idxStr == nullptr) return SQLITE_NOMEM;
  info->needToFreeIdxStr = 1;
  info->estimatedRows = static_cast<sqlite3_int64>(std::max(rows, 1.0));
  info->estimatedCost = std::max({rows, table.pass, 1.0});
  return SQLITE_OK;
}

int open(sqlite3_vtab* base, sqlite3_vtab_cursor** out) {
  return guarded(base, [&] {
    auto cursor = std::make_unique<OpenCursor>();
    cursor->rows = table_of(base).known.table->open();
    *out = cursor.release();
  });
}

int close(sqlite3_vtab_cursor* cursor) {
  delete &cursor_of(cursor);
  return SQLITE_OK;
}

Constraints constraints_of(const Table& table, const char* plan, sqlite3_value** values,
                           int count) {
  Constraints constraints;
  std::istringstream parts(plan == nullptr ? "" : plan);
  for (int i = 0; i < count; ++i) {
    size_t index = 0;
    int number = 0;
    parts >> index >> number;
    const Column& column = table.columns.at(index);
    const auto is = static_cast<Is>(number);
    const int type = sqlite3_value_type(values[i]);
    if (is == Is::kNull) {
      constraints.add({column.name, is, {}});
    } else if (column.type == Type::kInteger && type == SQLITE_INTEGER) {
      constraints.add({column.name, is, int64_t{sqlite3_value_int64(values[i])}});
    } else if (column.type == Type::kText && type == SQLITE_TEXT) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
      const auto size = static_cast<size_t>(sqlite3_value_bytes(values[i]));
      constraints.add({column.name, is, std::string(text, size)});
    }
  }
  return constraints;
}

int filter(sqlite3_vtab_cursor* base, int, const char* plan, int count, sqlite3_value** values) {
  return guarded(base->pVtab, [&] {
    OpenCursor& cursor = cursor_of(base);
    cursor.number = 0;
    cursor.rows->begin(constraints_of(*table_of(base->pVtab).known.table, plan, values, count));
  });
}

int next(sqlite3_vtab_cursor* base) {
  return guarded(base->pVtab, [&] {
    ++cursor_of(base).number;
    cursor_of(base).rows->next();
  });
}

int at_end(sqlite3_vtab_cursor* base) { return cursor_of(base).rows->at_end() ? 1 : 0; }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
  return guarded(base->pVtab,
                 [&] { cursor_of(base).rows->column(static_cast<size_t>(index), Cell(context)); });
}

int row_number(sqlite3_vtab_cursor* base, sqlite3_int64* number) {
  *number = cursor_of(base).number;
  return SQLITE_OK;
}

// Without xCreate the table is simply there; without xUpdate it cannot be written.
const sqlite3_module kModule = [] {
  sqlite3_module module = {};
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_number;
  return module;
}();

}  // namespace

Constraints::Range Constraints::range(std::string_view column) const {
  Range range;
  for (const Constraint& one : all_) {
    const auto* number = std::get_if<int64_t>(&one.value);
    if (one.column != column || number == nullptr) continue;
    const bool below = one.is == Is::kLess;
    const bool above = one.is == Is::kGreater;
    if ((below && *number == INT64_MIN) || (above && *number == INT64_MAX)) return {1, 0};
    if (one.is == Is::kEqual || one.is == Is::kAtLeast || above) {
      range.least = std::max(range.least, above ? *number + 1 : *number);
    }
    if (one.is == Is::kEqual || one.is == Is::kAtMost || below) {
      range.most = std::min(range.most, below ? *number - 1 : *number);
    }
  }
  return range;
}

std::optional<std::string> Constraints::text(std::string_view column) const {
  for (const Constraint& one : all_) {
    const auto* text = std::get_if<std::string>(&one.value);
    if (one.column == column && text != nullptr && one.is == Is::kEqual) return *text;
  }
  return std::nullopt;
}

bool Constraints::null(std::string_view column) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Constraint& one) {
    return one.column == column && one.is == Is::kNull;
  });
}

void Cell::put(int64_t value) { sqlite3_result_int64(context_, value); }

void Cell::put(double value) { sqlite3_result_double(context_, value); }

void Cell::put(std::string_view value) {
  sqlite3_result_text64(context_, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

Int address_of(uint64_t value) { return events::is_numbered(value) ? Int() : known(value); }

Int block_of(uint64_t value) {
  return events::is_numbered(value) ? Int(events::block_number(value)) : Int();
}

std::string Table::declaration() const {
  std::string out = fmt::format("CREATE TABLE {} (", name);
  for (const Column& column : columns) {
    out += fmt::format("{}{} {}", &column == columns.data() ? "" : ", ", column.name,
                       type_name(column.type));
  }
  return out + ")";
}

void add_table(sqlite3* connection, Table& table, std::exception_ptr& failure) {
  const auto destroy = [](void* known) { delete static_cast<ModuleData*>(known); };
  if (sqlite3_create_module_v2(connection, table.name, &kModule, new ModuleData{&table, &failure},
                               destroy) != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(connection));
  }
}

}  // namespace mtrace::sql
