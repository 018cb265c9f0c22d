// The file behind the tables (MTRACE_LEDGER): memory that grows at the end of a file which this
// process maps shared (format/ledger.h). Room is reserved on the disk before it is mapped, so that
// a full disk is an error here and never a signal later. No descriptor stays open: to grow, the
// file is opened by its name and known by its identity.
//
// Async-signal-safe. Growing is for one thread at a time, see TableTurn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "format/ledger.h"

namespace mtrace::sys {

// Of the file; nullptr: the tables are in memory of this process alone.
extern format::LedgerHeader* g_table_header;

// Makes a file of mode 0600 that was not there, maps its header and, over `window` (whole pages,
// zero), its first extent. A file that is there already, without a name, gives way to the new one,
// which gets its content; no other thread may run. 0 or a negative errno, -EEXIST among them; then
// nothing has changed, but `window` may be fresh memory.
long create_table_file(const char* path, void* window, size_t bytes);
// Where it is; "": nowhere.
const char* table_file_path();
// Whether memory of tables can be a file's, be it only as a copy of this process.
bool tables_in_file();
// Whether the file still has that name. Without one it does not grow.
bool table_file_has_name();
// Makes it another user's. Returns whose it was, or a negative errno: it still is.
long give_table_file(uint32_t user);
// Takes its name away, if it still is the file's.
void remove_table_file();

// In the child of a fork, alone, whose memory the file still is: takes the parent's tables out of
// this process, and leaves zeros in the window. Then there is no file.
void drop_table_file();
// The same for a child that goes on with what it inherited: from here on its writes are its own.
// `midway`: inside an operation on the tables, which may yet follow any address in them. All pages
// that can hold one are copied then, since the parent goes on adding parts that this process lacks.
// False: not all could be done, or, with the header still there, nothing: the file does not open.
bool detach_table_file(bool midway);

// A loss whose number lies in none of the tables, for readers of the file.
inline void count_loss(uint64_t format::LedgerHeader::*field) {
  if (g_table_header != nullptr) fetch_add<uint64_t>(g_table_header->*field, 1);
}

// The right to grow. All signals are blocked for as long as it lives, so who has it always comes to
// its end; a thread that waits for it longer than a second goes without.
class TableTurn {
 public:
  TableTurn();
  ~TableTurn();
  TableTurn(const TableTurn&) = delete;
  TableTurn& operator=(const TableTurn&) = delete;

  // Zeroed memory in whole pages, at the end of the file. nullptr: there is no file, or no room in
  // it, which the header then says.
  // `leads_on`: addresses of other parts may stand there.
  void* grow(size_t bytes, bool leads_on = true);
  // The same for parts without such addresses, of which there will be many: the file grows for
  // several at once, by an eighth of what parts take already, because it is a list of few pieces.
  void* grow_part(size_t bytes);
  // Zeroed memory in steps of 16 bytes, for what is smaller than 64 KiB.
  void* grow_little(size_t bytes);

 private:
  uint64_t mask_ = 0;
  bool held_ = false;
};

}  // namespace mtrace::sys
