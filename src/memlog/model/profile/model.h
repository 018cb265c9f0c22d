// A memlog in memory. Texts are unescaped (any bytes). Meta values stay as in the file, so that
// unknown keys survive unchanged.
#pragma once

#include "format/memlog.h"
#include "util/prelude.h"

namespace mtrace::profile {

// The name of a function or of a source line. Reports repeat their names in every stack: equal
// names are one text in memory.

// Lets a lookup use a part of a line without copying it into a string.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

// The texts stay until memlog ends, so a name costs a pointer, and comparing two names compares
// pointers. Thread-safe.
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

// The frames of a stack, innermost first: a list of its own, and then the rest, which it may have
// in common with other stacks. Copies share the list until one of them changes it.
class Frames {
 public:
  using List = std::vector<Frame>;
  using Rest = std::shared_ptr<const Frames>;

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Frame;
    using difference_type = std::ptrdiff_t;
    using pointer = const Frame*;
    using reference = const Frame&;

    Iterator() = default;
    explicit Iterator(const Frames* part) : part_(part) { settle(); }
    const Frame& operator*() const { return part_->own()[at_]; }
    const Frame* operator->() const { return &part_->own()[at_]; }
    Iterator& operator++() {
      ++at_;
      settle();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    // As many steps.
    Iterator operator+(difference_type count) const {
      Iterator out = *this;
      for (; count > 0; --count) ++out;
      return out;
    }
    bool operator==(const Iterator& other) const = default;

   private:
    void settle() {
      while (part_ != nullptr && at_ == part_->own().size()) {
        part_ = part_->rest_.get();
        at_ = 0;
      }
    }
    const Frames* part_ = nullptr;  // nullptr: the end
    size_t at_ = 0;
  };

  Frames() = default;
  // `number`: unique to this list if it is expected again; else 0.
  Frames(List list, uint64_t number = 0)  // NOLINT(google-explicit-constructor)
      : list_(std::make_shared<List>(std::move(list))), number_(number) {}
  Frames(List own, Rest rest) : Frames(std::move(own)) { rest_ = std::move(rest); }

  const List& own() const {
    static const List none;
    return list_ == nullptr ? none : *list_;
  }
  const Rest& rest() const { return rest_; }
  // The id in "# tail: ID"; 0: these are the frames of an entry, or have none.
  uint64_t tail() const { return tail_; }
  void set_tail(uint64_t id) { tail_ = id; }

  Iterator begin() const { return Iterator(this); }
  static Iterator end() { return Iterator(); }
  size_t size() const {
    size_t size = 0;
    for (const Frames* part = this; part != nullptr; part = part->rest_.get()) {
      size += part->own().size();
    }
    return size;
  }
  bool empty() const { return begin() == end(); }
  const Frame& operator[](size_t index) const {
    const Frames* part = this;
    for (; index >= part->own().size(); part = part->rest_.get()) index -= part->own().size();
    return part->own()[index];
  }
  uint64_t number() const { return number_; }
  void set_number(uint64_t number) { number_ = number; }

  // Returns all frames as one list for changes; from then on it is neither shared nor numbered.
  List& edit() {
    if (rest_ != nullptr || list_.use_count() != 1) list_ = std::make_shared<List>(begin(), end());
    rest_.reset();
    number_ = 0;
    return *list_;
  }

  bool operator==(const Frames& other) const {
    return std::equal(begin(), end(), other.begin(), Frames::end());
  }

 private:
  std::shared_ptr<List> list_;
  Rest rest_;
  uint64_t tail_ = 0;
  uint64_t number_ = 0;
};

// Changes the lists of stacks; those of rests, which many share, once.
class FramesChange {
 public:
  // `change(list)`: what takes the place of a list, or nothing if it stays.
  template <typename Change>
  Frames operator()(const Frames& frames, const Change& change) {
    std::optional<Frames::List> own = change(frames.own());
    Frames::Rest rest = frames.rest() == nullptr ? nullptr : changed(frames.rest(), change);
    if (!own && rest == frames.rest()) return frames;
    Frames out(own ? *std::move(own) : frames.own(), std::move(rest));
    out.set_tail(frames.tail());
    return out;
  }

 private:
  template <typename Change>
  Frames::Rest changed(const Frames::Rest& before, const Change& change) {
    if (const auto known = rests_.find(before); known != rests_.end()) return known->second;
    const Frames after = (*this)(*before, change);
    const bool same = &after.own() == &before->own() && after.rest() == before->rest();
    return rests_[before] = same ? before : std::make_shared<const Frames>(after);
  }
  absl::flat_hash_map<Frames::Rest, Frames::Rest> rests_;
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
  std::optional<uint64_t> delta_error;  // bytes: standard error, where `sampled`; so is live_error
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
  std::vector<RegionUse> regions;  // what is resident; empty: not known
  std::vector<Field> heap;         // bytes of malloc's heaps, where much of them is free
  std::vector<Field> heap_stacks;  // bytes that stacks keep resident of them, by id
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
  // Returns the index of a module. Of two of one path and generation the first counts.
  ModuleIndex add(const Module& module);
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
  ModuleIndex index(const std::string& path, uint32_t generation);

  std::string last_name_;  // of the last lookup; empty: none
  ModuleIndex last_ = 0;
  std::vector<Module> modules_;
  absl::flat_hash_map<std::string, ModuleIndex, NameHash, std::equal_to<>> by_name_;
  absl::flat_hash_map<std::pair<std::string, uint32_t>, ModuleIndex> by_path_;
};

// The ids of stacks, for what reports do not tell.

// The id of a stack, and those of its rests: its outermost kStep, 2 * kStep, ... frames.
class StackIds {
 public:
  using Rests = std::vector<uint64_t>;
  static constexpr size_t kStep = 8;

  // Outermost frame first.
  void add(uint64_t module_identity, uint64_t offset) {
    id_.add(module_identity, offset);
    if (++count_ % kStep == 0) rests_.push_back(id_.value());
  }
  uint64_t value() const { return id_.value(); }
  Rests take_rests() { return std::move(rests_); }

 private:
  format::StackId id_;
  size_t count_ = 0;
  Rests rests_;
};

inline uint64_t identity_of(const Module& module) {
  const std::string& text = module.build_id.empty() ? module.path : module.build_id;
  return format::module_identity(text.data(), text.size());
}

// Of frames, innermost first; identity(number) is that of a module.
template <typename Identity>
StackIds stack_ids(const Frames::List& frames, const Identity& identity) {
  StackIds ids;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->place == Place::kInlined) continue;
    ids.add(frame->place == Place::kModule ? identity(frame->module) : 0, frame->offset);
  }
  return ids;
}

}  // namespace mtrace::profile
