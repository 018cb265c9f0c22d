// A memlog in memory. Texts are unescaped (any bytes). Meta values stay as in the file, so that
// unknown keys survive unchanged.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtrace::profile {

// The name of a function or of a source line. Reports repeat their names in every stack: equal
// names are one text in memory.

// Lets a lookup use a part of a line without copying it into a string.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

// The texts stay until memlog ends, so a name costs a pointer, and comparing two names compares
// pointers. Only one thread may make names.
class Name {
 public:
  Name() = default;
  Name(std::string_view text);  // NOLINT(google-explicit-constructor)
  Name(const std::string& text) : Name(std::string_view(text)) {}  // NOLINT(*-explicit-constructor)
  Name(const char* text) : Name(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

  const std::string& text() const { return *text_; }
  operator const std::string&() const { return *text_; }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return *text_; }    // NOLINT(google-explicit-constructor)
  bool empty() const { return text_->empty(); }
  size_t size() const { return text_->size(); }

  bool operator==(const Name& other) const = default;

 private:
  static const std::string kNone;

  const std::string* text_ = &kNone;
};

// The frames of a stack. Equal stacks share one list: the reports of a process mostly repeat the
// same stacks.

// Index into Memlog::modules.
using ModuleIndex = uint32_t;

enum class Place : uint8_t {
  kModule,   // `offset` is an ELF address in `module`
  kAddress,  // `offset` is an address outside every module
  kInlined,  // inlined into the next frame that has an address
};

struct Frame {
  Place place = Place::kAddress;
  ModuleIndex module = 0;  // kModule only
  uint64_t offset = 0;     // 0 for kInlined
  Name function;           // empty: unknown
  Name source;             // FILE:LINE, empty: unknown
  bool guessed = false;    // it and those behind it may be wrong; never for kInlined

  bool operator==(const Frame&) const = default;
};

// A list of frames, innermost first. Copies share the list until one of them changes it.
class Frames {
 public:
  using List = std::vector<Frame>;

  Frames() = default;
  // `number`: unique to this list if it is expected again; else 0.
  Frames(List list, uint64_t number = 0)  // NOLINT(google-explicit-constructor)
      : list_(std::make_shared<List>(std::move(list))), number_(number) {}

  operator const List&() const { return list(); }  // NOLINT(google-explicit-constructor)
  const List& list() const {
    static const List none;
    return list_ == nullptr ? none : *list_;
  }
  List::const_iterator begin() const { return list().begin(); }
  List::const_iterator end() const { return list().end(); }
  size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  const Frame& operator[](size_t index) const { return list()[index]; }
  uint64_t number() const { return number_; }

  // Returns the list for changes; from then on it is neither shared nor numbered.
  List& edit() {
    if (list_.use_count() != 1) list_ = std::make_shared<List>(list());
    number_ = 0;
    return *list_;
  }

  bool operator==(const Frames& other) const { return list() == other.list(); }

 private:
  std::shared_ptr<List> list_;
  uint64_t number_ = 0;
};

// A loaded object. A module that frames name but no `# module:` line describes has neither build-id
// nor base.
struct Module {
  std::string path;
  uint32_t generation = 1;  // of the path in this process
  std::string build_id;     // raw bytes; empty: none
  uint64_t base = 0;        // load bias: the address of ELF address 0
  bool described = false;   // the memlog has a `# module:` line for it
  bool python = false;      // a source file of Python: offsets are no ELF addresses

  bool operator==(const Module&) const = default;
};

struct Field {
  std::string key;
  std::string value;  // as in the file

  bool operator==(const Field&) const = default;
};

// Milliseconds from allocation to free.
struct Lifetime {
  uint64_t least = 0;
  uint64_t mean = 0;
  uint64_t most = 0;

  bool operator==(const Lifetime&) const = default;
};

// What a stack did since the previous report, also when nothing of it remains.
struct Activity {
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t frees = 0;
  uint64_t freed_bytes = 0;
  uint64_t temporary = 0;    // frees by the thread that allocated the block and nothing since
  uint64_t short_lived = 0;  // frees within a set time
  Lifetime lifetime;         // of the freed blocks

  bool operator==(const Activity&) const = default;
};

struct Entry {
  std::string kind;  // without the "@"; empty: heap
  int64_t bytes = 0;
  uint64_t error = 0;       // bytes, the standard error of a sampled change; 0: exact
  int64_t blocks = 0;       // 0 also when an entry of another kind has no such field
  uint64_t live = 0;        // bytes; 0 also when absent
  uint64_t live_error = 0;  // bytes, its standard error; 0: exact
  Activity activity;        // all 0 when the file does not have it
  uint64_t age = 0;         // milliseconds, of the oldest live block; 0 also when absent
  uint64_t slack = 0;       // bytes; 0 also when absent
  uint64_t peak = 0;        // bytes; 0 also when absent
  uint64_t whole = 0;       // frames that the cut stack had (kFieldDepth); 0 also when absent
  Name call;                // the function that was called; empty when absent
  uint64_t stack = 0;       // id; 0 also when absent
  std::string fields;       // all fields as in the file, separated by tabs
  bool tells_live = false;  // `fields` has live=
  bool further = false;     // `fields` has one that this program does not know
  Frames frames;
  bool cut = false;  // ends with "..."

  bool heap() const { return kind.empty(); }
};

enum class Resolved : uint8_t { kNo, kPartly, kYes };

struct Total {
  int64_t bytes = 0;
  int64_t blocks = 0;

  bool operator==(const Total&) const = default;
};

struct Peak {
  uint64_t bytes = 0;
  std::string time;  // 2026-11-20T20:15:12.000412Z

  bool operator==(const Peak&) const = default;
};

// Live total of the entries of one kind.
struct KindTotal {
  std::string kind;
  Total live;

  bool operator==(const KindTotal&) const = default;
};

// The mappings of one kind, or of one file, that have resident memory. Bytes.
struct RegionUse {
  std::string name;  // a path, or what the memory is
  uint64_t resident = 0;
  uint64_t size = 0;

  bool operator==(const RegionUse&) const = default;
};

// The meta lines that this program knows.
struct Header {
  std::string program;
  std::string command;  // as in the file
  int64_t pid = 0;
  std::optional<int64_t> parent;  // pid; 0: outside the pid namespace
  int64_t seq = 0;
  std::optional<int64_t> merged;  // the first of the reports that memlog merged into this one
  std::string trigger;
  std::string label;
  std::string started;  // 2026-11-20T20:15:00.000000Z
  std::string taken;
  std::optional<Total> inherited;
  std::optional<uint64_t> sampled;  // bytes between samples, on average; absent: exact
  Total delta;
  std::optional<uint64_t> delta_error;  // bytes: standard error; so is live_error
  Total live;
  std::optional<uint64_t> live_error;
  std::optional<uint64_t> usable;  // bytes
  std::optional<Total> allocated;  // since the start of the process
  std::optional<Total> freed;
  std::optional<Peak> peak;
  std::optional<uint64_t> peak_error;  // bytes
  bool stopped = false;                // recording is stopped
  std::vector<Field> lost;             // counts in decimal, as in all lists of fields here
  std::vector<std::string> notes;
  std::vector<KindTotal> kinds;
  std::vector<Field> calls;  // by function, since the start
  std::optional<uint64_t> failed_allocations;
  std::optional<uint64_t> unknown_frees;
  std::vector<Field> misuse;       // by cause
  std::vector<Field> reports;      // written, failed
  std::vector<RegionUse> regions;  // with MTRACE_MMAP
  std::optional<uint64_t> rss;     // bytes; so are the next two
  std::optional<uint64_t> rss_max;
  std::optional<uint64_t> virtual_size;
  std::string resolution;  // milliseconds, as in the file
  std::string uptime;      // seconds, as in the file
  std::string host;
  std::string boot_id;
  std::string library;  // as in the file
  Resolved resolved = Resolved::kNo;
};

struct Memlog {
  std::string name;  // of the file, for messages
  Header header;
  std::vector<Field> before;  // meta lines before the entries, in file order; `after`: those after
                              // them
  std::vector<Field> after;
  std::vector<Module> modules;
  std::vector<Entry> entries;
};

// Returns the value of `key` in `fields`, or nullptr.
inline const std::string* find_field(const std::vector<Field>& fields, std::string_view key) {
  for (const Field& field : fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

// Maps (path, generation) to a module's index while a memlog is read.

class ModuleTable {
 public:
  // Returns the index of `escaped_name`: PATH[#GENERATION] as in the file. Remembers each spelling.
  // Throws LineError when it is malformed.
  ModuleIndex index(std::string_view escaped_name);
  Module& operator[](ModuleIndex index) { return modules_[index]; }
  std::vector<Module> take() { return std::move(modules_); }
  bool empty() const { return modules_.empty(); }
  size_t size() const { return modules_.size(); }
  // Takes over these modules with their indices. The table must be empty.
  void adopt(const std::vector<Module>& modules) {
    modules_ = modules;
    for (ModuleIndex i = 0; i < modules.size(); ++i) {
      by_path_.try_emplace({modules[i].path, modules[i].generation}, i);
    }
  }

 private:
  std::string last_name_;  // of the last lookup; empty: none
  ModuleIndex last_ = 0;
  std::vector<Module> modules_;
  absl::flat_hash_map<std::string, ModuleIndex, NameHash, std::equal_to<>> by_name_;
  absl::flat_hash_map<std::pair<std::string, uint32_t>, ModuleIndex> by_path_;
};

}  // namespace mtrace::profile
