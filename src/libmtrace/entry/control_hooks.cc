// mallopt, malloc_trim, mallinfo: the next report has each call, with its stack as an entry
// @control and with time, arguments and result as a note. Notes of the program have priority: once
// a quarter of the places for notes is taken, a call is only counted in its entry.
#include <malloc.h>

#include "base/machine.h"
#include "base/writer.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "ledger/resource_table.h"
#include "life/lifecycle.h"
#include "next/next_functions.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "report/notes.h"
#include "report/snapshot.h"

namespace mtrace::entry {
namespace {

using ledger::g_ledger;

constexpr unsigned kMostPending = report::kMostNotes / 4;  // notes; with so many none is added

// Counts the call. Returns the index of its stack; 0: nothing is recorded.
uint32_t count_control(uint8_t call, const unwind::Registers& caller) {
  if (!record::recording()) return 0;
  const unsigned kind = ledger::find_or_add_kind(format::kKindControl);
  if (kind == 0) return 0;
  ledger::Operation operation(g_ledger.threads.slot(record::this_slot()));
  const uint32_t stack = record::intern_of_kind(kind, caller, call);
  if (stack != 0) ledger::count_recorded(g_ledger.stacks.record(stack), 0);
  return stack;
}

// Counts the call and adds a note, for which write(out) writes the call.
template <typename Write>
void note_control(uint8_t call, const unwind::Registers& caller, Write&& write) {
  const uint32_t stack = count_control(call, caller);
  if (stack == 0 || report::pending_notes().count >= kMostPending) return;
  char text[report::kMostNote + 1];
  Writer out(text, sizeof text);
  write(out);
  out.text(", called at ").text(format::kFieldStack).put('=');
  out.hex(report::stack_id(g_ledger.stacks.record(stack)), 16).finish();
  report::add_note(text, false);
}

Writer& put_signed(Writer& out, int value) {
  if (value < 0) out.put('-');
  return out.number(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}

Writer& put_parameter(Writer& out, int parameter) {
  constexpr struct {
    int number;
    const char* name;
  } kNames[] = {{M_MXFAST, "M_MXFAST"},      {M_TRIM_THRESHOLD, "M_TRIM_THRESHOLD"},
                {M_TOP_PAD, "M_TOP_PAD"},    {M_MMAP_THRESHOLD, "M_MMAP_THRESHOLD"},
                {M_MMAP_MAX, "M_MMAP_MAX"},  {M_CHECK_ACTION, "M_CHECK_ACTION"},
                {M_PERTURB, "M_PERTURB"},    {M_ARENA_TEST, "M_ARENA_TEST"},
                {M_ARENA_MAX, "M_ARENA_MAX"}};
  for (const auto& one : kNames) {
    if (one.number == parameter) return out.text(one.name);
  }
  return put_signed(out, parameter);
}

template <typename Info>
void note_info(uint8_t call, const Info& info, const unwind::Registers& caller) {
  note_control(call, caller, [&](Writer& out) {
    out.text(format::call_name(call)).text("() found ");
    out.number(static_cast<uint64_t>(info.uordblks)).text(" bytes in use, ");
    out.number(static_cast<uint64_t>(info.fordblks)).text(" free");
  });
}

}  // namespace
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

MTRACE_EXPORT int mallopt(int parameter, int value) noexcept {
  if (next::g_next.mallopt == nullptr && (!life::start() || next::g_next.mallopt == nullptr))
    return 0;
  const int result = next::g_next.mallopt(parameter, value);
  note_control(format::kMallopt, MTRACE_CALLER_REGISTERS(), [&](Writer& out) {
    put_parameter(out.text("mallopt("), parameter).text(", ");
    put_signed(put_signed(out, value).text(") returned "), result);
  });
  return result;
}

MTRACE_EXPORT int malloc_trim(size_t pad) noexcept {
  if (next::g_next.malloc_trim == nullptr &&
      (!life::start() || next::g_next.malloc_trim == nullptr))
    return 0;
  const int result = next::g_next.malloc_trim(pad);
  note_control(format::kMallocTrim, MTRACE_CALLER_REGISTERS(), [&](Writer& out) {
    put_signed(out.text("malloc_trim(").number(pad).text(") returned "), result);
  });
  return result;
}

MTRACE_EXPORT struct mallinfo mallinfo() noexcept {
  if (next::g_next.mallinfo == nullptr && (!life::start() || next::g_next.mallinfo == nullptr))
    return {};
  const struct mallinfo info = next::g_next.mallinfo();
  note_info(format::kMallinfo, info, MTRACE_CALLER_REGISTERS());
  return info;
}

MTRACE_EXPORT struct mallinfo2 mallinfo2() noexcept {
  if (next::g_next.mallinfo2 == nullptr && (!life::start() || next::g_next.mallinfo2 == nullptr))
    return {};
  const struct mallinfo2 info = next::g_next.mallinfo2();
  note_info(format::kMallinfo2, info, MTRACE_CALLER_REGISTERS());
  return info;
}
