// Reads the state of a ledger: every stack with its counters, the modules, the totals.
//
// While the process runs, each stack is read as the library's own reports read it: first what was
// freed, then what was allocated. So a block freed in between still counts as live, and no stack
// has freed more than it allocated. Different stacks are read at different moments.
#pragma once

#include "format/calls.h"
#include "format/python.h"
#include "model/ledger/ledger_file.h"
#include "model/profile/model.h"
#include "util/prelude.h"

namespace mtrace::ledger {

using LedgerCounts = format::LedgerCounters;

struct LedgerStackState {
  uint32_t index = 0;    // by which blocks name the stack
  uint32_t ordinal = 0;  // from 1; never changes
  uint8_t kind = 0;      // 0: heap
  uint8_t call = format::kNoCall;
  uint32_t mapping_form = 0;  // format/mapping_form.h; 0: none
  bool cut = false;
  uint32_t retired = 0;  // unload epoch; kLedgerAlive: in use
  LedgerCounts now = {};
  LedgerCounts reported = {};  // at the last numbered report
  uint64_t slack = 0;          // bytes
  uint64_t share = 0;          // bytes held at the peak
  uint32_t shortest = 0;       // lifetimes since the last report, encoded as in the library
  uint32_t longest = 0;
  std::vector<uint64_t> frames;  // innermost first
  unsigned guessed = 0;          // index of the first that may be wrong; 0: none
};

struct LedgerModuleState {
  format::LedgerModule entry;
  std::string path;
  uint64_t address = 0;  // of the entry, in the process
};

// A code object of Python. The texts are bounded, the path is not empty.
struct LedgerCodeState {
  format::LedgerPythonCode entry;
  std::string name;
  std::string table;  // locations, see format::PythonLines
  std::string file;
};

struct LedgerState {
  std::vector<LedgerStackState> stacks;
  std::vector<LedgerModuleState> modules;                 // by number
  absl::flat_hash_map<uint32_t, LedgerCodeState> python;  // by number
  uint64_t calls[format::kLedgerCalls] = {};
  uint64_t failed_allocations = 0;
  uint64_t unknown_frees = 0;
  uint64_t peak = 0;       // bytes, as the process has recorded it
  uint64_t peak_when = 0;  // ticks
  uint64_t kept = 0;       // bytes: upper bound on what threads batch without publishing, see
                           // ledger/peak.h
  bool several_threads = false;
  uint64_t lost_stacks = 0;
  uint64_t lost_frames = 0;
  uint64_t lost_blocks = 0;
  uint64_t lost_inflight = 0;
  uint64_t lost_frees = 0;
  uint64_t unread = 0;  // stacks and modules that are damaged or not in the file
};

uint64_t counted_calls(const LedgerState& state);

// Reads the ledger. Throws LedgerError when even the roots of the tables are missing.
LedgerState read_ledger(const LedgerFile& file);

struct LedgerBlock {
  uint64_t address;
  uint64_t size;              // requested bytes
  uint32_t stack;             // LedgerStackState::index
  uint64_t birth;             // ticks
  uint32_t packed_birth = 0;  // the same as the ledger has it: unpack_ticks()
};

// Calls `visit` for every block that is live during the whole call, and possibly for others.
// Returns false when a part of the table is not in the file.
bool each_block(const LedgerFile& file, const std::function<void(const LedgerBlock&)>& visit);

// Returns the ticks of a packed time (ledger/block.h).
uint64_t unpack_ticks(uint32_t packed);
inline uint64_t tick_nanoseconds(uint64_t ticks) { return ticks << 20; }
// Returns the whole ticks in a time.
inline uint64_t ticks_in(uint64_t nanoseconds) { return nanoseconds >> 20; }
inline uint64_t tick_milliseconds(uint64_t ticks) { return tick_nanoseconds(ticks) / 1'000'000; }

// The last state read from a ledger, with its stacks by the index that blocks use.
class KnownLedger {
 public:
  explicit KnownLedger(const LedgerFile& file) { read(file); }

  // Reads the ledger again and invalidates all pointers from before. Throws LedgerError.
  void read(const LedgerFile& file) {
    state_ = read_ledger(file);
    by_index_.clear();
    for (size_t i = 0; i < state_.stacks.size(); ++i) by_index_[state_.stacks[i].index] = i;
  }
  const LedgerState& state() const { return state_; }
  // Returns the stack at `index`, or nullptr if the last read found none.
  const LedgerStackState* find(uint32_t index) const {
    const auto at = by_index_.find(index);
    return at == by_index_.end() ? nullptr : &state_.stacks[at->second];
  }

 private:
  LedgerState state_;
  absl::flat_hash_map<uint32_t, size_t> by_index_;
};

// Finds the module of an address in a ledger.
class LedgerModules {
 public:
  // `state` must outlive this. Call forget() after each change of its modules.
  explicit LedgerModules(const LedgerState& state) : state_(state), modules_(state.modules) {}
  void forget() {
    identities_.clear();
    known_.clear();
  }

  static constexpr size_t kNone = SIZE_MAX;
  // Returns the module's position in the list, or kNone. `retired`: the unload epoch at which the
  // stack was retired; kLedgerAlive: it is in use.
  size_t find(uint64_t address, uint32_t retired);
  profile::StackIds stack_ids(const LedgerStackState& stack);

 private:
  const LedgerState& state_;
  const std::vector<LedgerModuleState>& modules_;
  std::vector<uint64_t> identities_;
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, size_t> known_;
};

// Reads single stacks of a ledger while its process goes on.
class LedgerStacks {
 public:
  // `file` must outlive this, which refreshes it.
  explicit LedgerStacks(LedgerFile& file) : file_(file), modules_(state_) {}

  // Reads the stack that blocks name by `index`, without its counters. Returns nullptr when the
  // file does not have it. Valid, as is what the next one returns, until the next call.
  const LedgerStackState* find(uint32_t index);
  // Returns the module of an address in that stack, or nullptr.
  const LedgerModuleState* module_of(uint64_t address);
  // Returns a state that has the code object of a Python frame, if the file does.
  const LedgerState& with_code_of(uint64_t frame);

 private:
  template <typename T>
  T header_word(size_t offset) const;
  // Reads the list of extents again if there are more.
  bool has_grown();
  bool read(uint64_t address, void* to, size_t size);
  bool read_arena(uint32_t index, size_t offset, void* to, size_t size);
  void look_for_deaths();

  LedgerFile& file_;
  std::vector<uint64_t> arena_;  // addresses of its chunks; 0: not known
  LedgerState state_;            // modules and Python's code
  uint64_t first_module_ = 0;    // addresses of what was read last
  uint64_t first_code_ = 0;
  LedgerModules modules_;
  LedgerStackState stack_;
};

// What a ledger says in words: notes that no report contains yet, Python functions.

// Reads the notes in a ledger that no report contains yet.

struct LedgerNoteText {
  uint64_t time;     // nanoseconds since 1970
  std::string text;  // as the program gave it, not escaped
};

// Returns the notes, oldest first. Skips a note that a living process is writing at that moment.
std::vector<LedgerNoteText> read_notes(const LedgerFile& file);

// The Python functions that the stacks of a ledger name.

// A frame of a Python function as memlogs have it.
struct PythonFrameText {
  std::string function;
  uint32_t line = 0;      // 0: none belongs to it
  std::string source;     // FILE:LINE; empty: none
  std::string module;     // the source file's path; empty: the function found no room
  uint64_t identity = 0;  // format::module_identity of the path
  uint64_t offset = 0;
};

// Returns the line that says which Python functions stacks lack and why, as reports have it; empty:
// they lack none. `path`: of the interpreter's object; empty: not known. It is escaped.
std::string python_gap_text(const format::PythonCoverage& coverage, const std::string& path);
// The same of a ledger. Only of interpreters that stacks name is the path known.
std::string python_gap(const LedgerFile& file, const LedgerState& state);

// Describes `frame`, for which format::PythonFrame::is_one().
PythonFrameText python_frame(const LedgerState& state, uint64_t frame);

}  // namespace mtrace::ledger
