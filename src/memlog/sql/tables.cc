#include "sql/tables.h"

namespace mtrace::sql {

Tables all_tables(const Data& data) {
  Tables tables;
  add_process_tables(tables, data);
  add_entry_table(tables, data);
  add_fleet_table(tables, data);
  add_stack_tables(tables, data);
  add_allocation_table(tables, data);
  add_event_tables(tables, data);
  add_time_tables(tables, data);
  return tables;
}

}  // namespace mtrace::sql
