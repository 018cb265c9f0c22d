// The file behind the tables (MTRACE_LEDGER): memory that grows at the end of a file which this
// process maps shared (format/ledger.h). Room is reserved on the disk before it is mapped, so that
// a full disk is an error here and never a signal later. No descriptor stays open: to grow, the
// file is opened by its name and checked by device and inode.
//
// Async-signal-safe. Growing is for one thread at a time, see TableTurn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/turn.h"
#include "format/ledger.h"

namespace mtrace::base {

// The header in use: of the file or, without one, in this process's data. A fork's child that still
// has its parent's file must not write to it. Its magic number is set in the file alone.
extern format::LedgerHeader g_own_header;
extern format::LedgerHeader* g_table_header;
// False: the tables are in memory of this process alone.
inline bool has_table_file() { return load(g_table_header) != &g_own_header; }

// Creates a file of mode 0600, maps its header and, over `window` (whole pages, zero), its first
// extent. If the tables are in a file already, which has lost its name, moves them to the new one;
// no other thread may run. 0 or a negative errno, -EEXIST if the path exists; then nothing has
// changed, but `window` may be fresh memory.
long create_table_file(const char* path, void* window, size_t bytes);
// Path of the file; "": none.
const char* table_file_path();
// Whether tables may be mapped from a file, also as this process's private copy.
bool tables_in_file();
// Whether the page at the address is of the file.
bool is_table_file(uintptr_t address);
// Whether the path still leads to the file. Without a name the file does not grow.
bool table_file_has_name();
// Gives the file to another user. Returns the previous owner, or a negative errno: unchanged.
long give_table_file(uint32_t user);
// Removes the path, if it still leads to the file.
void remove_table_file();

// In the child of a fork, with one thread and the parent's file still mapped: unmaps the parent's
// tables and puts zeros in the window. Then there is no file.
void drop_table_file();
// For a child of fork that goes on with the inherited tables: maps them private, so that its writes
// are its own. `midway`: inside an operation on the tables, which may follow any address in them;
// so copies all pages that can hold one, since the parent goes on adding parts that this process
// lacks. False: done in part, or, with the header still there, not at all: the file does not open.
bool detach_table_file(bool midway);

// The right to grow the file. A thread that waits for it longer than a second goes without.
class TableTurn {
 public:
  TableTurn();

  // Zeroed memory in whole pages, at the end of the file. nullptr: there is no file, or it did not
  // grow, which the header then records. `has_addresses`: the memory may hold addresses of other
  // parts.
  void* grow(size_t bytes, bool has_addresses = true);
  // grow() for parts without such addresses, of which there will be many: grows the file for
  // several at once, by an eighth of what parts take already, because its list of extents is short.
  void* grow_part(size_t bytes);
  // Zeroed memory of at most 64 KiB, in steps of 16 bytes.
  void* grow_little(size_t bytes);

 private:
  Turn turn_;
};

}  // namespace mtrace::base
