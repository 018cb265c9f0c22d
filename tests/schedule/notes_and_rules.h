// Scenarios of what is lock-free outside src/ledger: the cache of rules and the notes.
#pragma once

#include <cstring>
#include <string>

#include "report/notes.cc"
#include "scheduler.h"
#include "unwind/rule_cache.cc"

// No event log beside the notes.
namespace mtrace::events {
constinit bool g_logging = false;
void noted(const char*) {}
}  // namespace mtrace::events

// The loader and its tables, as the cache of rules sees them: which of two objects lies at the
// address, the other one's rules differ.
namespace mtrace::modules {
uint32_t g_object_there = 0;
namespace internal {
uint32_t unload_epoch = 0;
}
const Object* loaded_object(uintptr_t, Object* scratch) {
  scratch->base = load(g_object_there);
  return scratch;
}
bool is_loader(const Object&) { return false; }
}  // namespace mtrace::modules

namespace mtrace::cfi {
bool find_fde(const Bounds&, uintptr_t, uintptr_t, Fde*) { return true; }
bool find_row(const Bounds&, const Fde&, uintptr_t, Row*) { return true; }
}  // namespace mtrace::cfi

namespace mtrace::unwind {

bool is_python_loop(const modules::Object&, uintptr_t) { return false; }
bool find_registered_row(uintptr_t, modules::Object*, cfi::Row*) { return false; }
Rule pack_rule(const modules::Object& object, const cfi::Row&) {
  return Rule(RuleKind::kSp, 8 * object.base);
}

// Two threads compile the rule of one address while a third one notices that another object has
// come to lie there.
class RuleOfTheUnloaded : public schedule::Scenario {
 public:
  RuleOfTheUnloaded() {
    place() = 0;
    g_touched = {};
    modules::internal::unload_epoch = 0;
    modules::g_object_there = 1;
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread < 2) {
      const Rule rule = compile_rule(kKey);
      schedule::expect(rule.offset() == 8 || rule.offset() == 16, "a rule of neither");
      return;
    }
    store(modules::g_object_there, 2u);
    // forget_rules() without all the other places.
    add_fetch_ordered(modules::internal::unload_epoch, 1u);
    constexpr uintptr_t kPlace = static_cast<uint16_t>(kKey);
    if (g_touched.has(kPlace / kPart)) forget_at(kPlace, kKey - 1, kKey);
  }
  void check() override {
    const Rule rule(place());
    schedule::expect(rule.bits() == 0 || (rule.holds_for(kKey) && rule.offset() == 16),
                     "the rule of the unloaded object stays");
  }

 private:
  static constexpr uintptr_t kKey = 0x7f0000012345;
  static uint64_t& place() { return internal::rule_table[static_cast<uint16_t>(kKey)]; }
};

}  // namespace mtrace::unwind

namespace mtrace::base {
uint64_t real_time() { return 0; }
bool read_memory(uintptr_t, void*, size_t) { return false; }  // no code
}  // namespace mtrace::base

namespace mtrace::ledger {
constinit Ledger g_ledger = {};  // of which only the notes are used
}  // namespace mtrace::ledger

namespace mtrace::report {

// Two threads make notes, one of them interrupted by a handler that makes one, too, while reports
// take them up. Each is taken up once, whole.
class NotesAndReport : public schedule::Scenario {
 public:
  explicit NotesAndReport(bool handler) : handler_(handler) {
    g_next = 0;
    base::g_table_header->lost_notes = 0;
    // All but three slots have a note that nobody takes up, so that the others meet.
    for (unsigned i = 0; i < kMostNotes; ++i) {
      g_slots[i] = {i >= 3 && i < 6 ? kNoteFree : kNoteWriting, 0, 0, ""};
    }
  }
  unsigned threads() const override { return 3; }
  bool has_handler() const override { return handler_; }
  void handle() override { note("handler"); }
  void run(unsigned thread) override {
    if (thread < 2) {
      note(thread == 0 ? "first" : "second");
    } else {
      take_up();
    }
  }
  void check() override {
    take_up();
    schedule::expect(kept_ == made_ && base::g_table_header->lost_notes == 0,
                     "dropped though there was room");
    schedule::expect(taken_ == made_, "a note is lost, or taken up twice");
  }

 private:
  void note(const char* text) {
    ++made_;
    kept_ += add_note(text, false);
  }
  void take_up() {
    const PendingNotes notes = pending_notes();
    for (unsigned i = 0; i < notes.count; ++i) {
      const std::string text = note_at(notes, i).text;
      schedule::expect(text == "first" || text == "second" || text == "handler", "half a note");
      ++taken_;
    }
    drop_notes(notes);
  }
  bool handler_;
  unsigned made_ = 0;
  unsigned kept_ = 0;
  unsigned taken_ = 0;
};

}  // namespace mtrace::report
