#include "life/triggers.h"

#include <errno.h>
#include <signal.h>

#include <cstddef>
#include <cstring>

#include "base/atomic.h"
#include "base/machine.h"
#include "base/probe.h"
#include "base/process.h"
#include "life/lifecycle.h"
#include "life/reporting.h"
#include "next/next_functions.h"
#include "report/status.h"

namespace mtrace::life {

namespace {

using format::Handler;

bool g_active = false;
Returns g_returns = Returns::kAll;
bool no_handler_returns() { return load(g_returns) == Returns::kNone; }

// Handlers align their frames: an emulator (qemu-user) may enter them with an unaligned stack.
MTRACE_REALIGN void write_report_on_signal(int) {
  trigger_report(report::Trigger::kSignal, nullptr);
}
MTRACE_REALIGN void toggle_on_signal(int) { toggle_recording(); }
void swallow_signal(int) {}

uint32_t g_remembered = 0;  // 1: a trigger came before there were tables
void remember_signal(int) { store(g_remembered, 1u); }

struct Trigger {
  int signal;  // 0: not in use
  // What the program reads back while our action stands in for the default: flags and mask of its
  // own last reset. If two threads set one signal at once, either's.
  struct sigaction default_seen;
  bool given_up;  // SIG_IGN or SIG_DFL is set in place of the handler
};
constexpr size_t kFatal = sizeof kFatalSignals / sizeof kFatalSignals[0];
constinit Trigger g_triggers[2 + kFatal] = {};
Trigger& g_report = g_triggers[0];
Trigger& g_toggle = g_triggers[1];

// nullptr: end_on_signal.
next::SignalHandler handler_of(const Trigger& trigger) {
  return &trigger == &g_report   ? write_report_on_signal
         : &trigger == &g_toggle ? toggle_on_signal
                                 : nullptr;
}

Trigger* trigger_of(int number) {
  for (Trigger& trigger : g_triggers) {
    if (trigger.signal == number && number != 0) return &trigger;
  }
  return nullptr;
}

// As sigfillset, which a sanitizer may replace: all signals but the two that libc needs itself.
sigset_t all_signals() {
  constexpr unsigned long kOfLibc = 3ul << 31;  // 32 and 33
  sigset_t set;
  memset(&set, 0xff, sizeof set);
  set.__val[0] &= ~(kOfLibc | 1ul << (SIGSYS - 1));  // see base::block_signals()
  return set;
}

struct sigaction own_action(const Trigger& trigger) {
  struct sigaction action = {};
  if (no_handler_returns()) {
    action.sa_handler = handler_of(trigger) == nullptr ? SIG_DFL : SIG_IGN;
    return action;
  }
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  if (handler_of(trigger) == nullptr) {
    action.sa_sigaction = end_on_signal;
    action.sa_flags |= SA_SIGINFO;
  } else {
    action.sa_handler = g_active ? handler_of(trigger) : swallow_signal;
  }
  action.sa_mask = all_signals();
  return action;
}

bool is_own(next::SignalHandler handler) {
  return handler == write_report_on_signal || handler == toggle_on_signal ||
         handler == swallow_signal || handler == remember_signal ||
         reinterpret_cast<const void*>(handler) == reinterpret_cast<const void*>(end_on_signal);
}

// Whether the program sees the default in place of `handler`.
bool stands_for_default(const Trigger& trigger, next::SignalHandler handler) {
  return is_own(handler) || (trigger.given_up && (handler == SIG_IGN || handler == SIG_DFL));
}

void note_handler(const Trigger& trigger, next::SignalHandler handler) {
  if (&trigger != &g_report) return;
  if (g_active && !is_own_process()) return;  // a vfork child changes only its own signals
  if (handler == SIG_DFL || is_own(handler)) {
    report::status_handler(load(g_returns) != Returns::kAll ? Handler::kForbidden
                           : g_active                       ? Handler::kOurs
                                                            : Handler::kSwallowed);
    report::set_note(nullptr);
    return;
  }
  const bool ignored = handler == SIG_IGN;
  report::status_handler(ignored ? Handler::kIgnored : Handler::kProgram);
  report::set_note(ignored ? "the program ignores the signal that writes reports"
                           : "the program uses the signal that writes reports itself");
}

void install(Trigger& trigger, int signal) {
  struct sigaction old;
  if (signal == 0 || next::g_next.sigaction(signal, nullptr, &old) != 0) return;
  if (old.sa_handler == SIG_DFL || is_own(old.sa_handler)) {
    const struct sigaction action = own_action(trigger);
    if (next::g_next.sigaction(signal, &action, nullptr) != 0) return;
  }
  note_handler(trigger, old.sa_handler);
  trigger.signal = signal;
}

}  // namespace

int change_action(int number, const struct sigaction* action, struct sigaction* old) {
  if (next::g_next.sigaction == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  Trigger* trigger = trigger_of(number);
  if (trigger == nullptr) return next::g_next.sigaction(number, action, old);
  // The program sees the signal as without this library: our action reads as the default, and
  // setting the default sets our action, because an unhandled trigger would end the program.
  struct sigaction wanted;
  struct sigaction previous;
  const struct sigaction* set = action;
  if (action != nullptr && action->sa_handler == SIG_DFL) {
    wanted = own_action(*trigger);
    set = &wanted;
  }
  const struct sigaction seen = trigger->default_seen;
  const int result = next::g_next.sigaction(number, set, &previous);
  if (result != 0) return result;
  if (set == &wanted) {
    trigger->default_seen = *action;
    trigger->default_seen.sa_flags |= machine::kLibcsActionFlags;
  }
  if (old != nullptr) {
    *old = stands_for_default(*trigger, previous.sa_handler) ? seen : previous;
  }
  if (action == nullptr) return 0;
  note_handler(*trigger, action->sa_handler);
  trigger->given_up = set == &wanted && no_handler_returns();
  return 0;
}

next::SignalHandler change_handler(SetHandler set, int number, next::SignalHandler handler,
                                   int flags) {
  if (set == nullptr) {
    errno = ENOSYS;
    return SIG_ERR;
  }
  Trigger* trigger = trigger_of(number);
  if (trigger != nullptr && handler == SIG_DFL) {
    struct sigaction standard = {};
    standard.sa_flags = flags;
    struct sigaction old;
    return change_action(number, &standard, &old) == 0 ? old.sa_handler : SIG_ERR;
  }
  const next::SignalHandler old = set(number, handler);
  if (trigger == nullptr || old == SIG_ERR) return old;
  note_handler(*trigger, handler);
  const next::SignalHandler seen = stands_for_default(*trigger, old) ? SIG_DFL : old;
  trigger->given_up = false;
  return seen;
}

void catch_trigger(int report) {
  if (report != 0 && base::catch_by_default(report, remember_signal)) g_report.signal = report;
}

void install_triggers(int report, int toggle, bool active, bool fatal) {
  g_active = active;
  install(g_report, report);
  install(g_toggle, toggle);
  // Fatal signals do nothing to the first process of a namespace that has no handler for them.
  const bool all = fatal && base::process_id() != 1;
  for (size_t i = 0; all && i < kFatal; ++i) {
    const int signal = kFatalSignals[i].number;
    if (trigger_of(signal) == nullptr) install(g_triggers[2 + i], signal);
  }
  if (exchange(g_remembered, 0u) != 0 && active) write_report_on_signal(report);
}

void remove_triggers() {
  for (Trigger& trigger : g_triggers) {
    struct sigaction now;
    if (trigger.signal != 0 && next::g_next.sigaction(trigger.signal, nullptr, &now) == 0 &&
        stands_for_default(trigger, now.sa_handler)) {
      // A trigger that is pending must not end the program.
      struct sigaction swallow = {};
      swallow.sa_handler = trigger.given_up ? SIG_IGN : swallow_signal;
      swallow.sa_flags = SA_RESTART | SA_ONSTACK;
      const bool pending = base::is_pending(trigger.signal);
      next::g_next.sigaction(trigger.signal, pending ? &swallow : &trigger.default_seen, nullptr);
    }
    trigger.signal = 0;
    trigger.default_seen = {};
    trigger.given_up = false;
  }
  report::status_handler(Handler::kNone);
}

Returns give_up_handlers(bool all) {
  const Returns before = load(g_returns);
  const Returns wanted = all ? Returns::kNone : Returns::kSome;
  if (before >= wanted) return before;
  store(g_returns, wanted);
  if (mtrace_status_block.handler == Handler::kOurs) report::status_handler(Handler::kForbidden);
  for (Trigger& trigger : g_triggers) {
    struct sigaction now;
    if (!all || trigger.signal == 0 || next::g_next.sigaction(trigger.signal, nullptr, &now) != 0)
      continue;
    if (!is_own(now.sa_handler)) continue;
    const struct sigaction action = own_action(trigger);
    trigger.given_up = next::g_next.sigaction(trigger.signal, &action, nullptr) == 0;
  }
  return before;
}

void take_up_handlers(Returns before) {
  store(g_returns, before);
  for (Trigger& trigger : g_triggers) {
    if (!trigger.given_up) continue;
    trigger.given_up = false;
    const struct sigaction action = own_action(trigger);
    next::g_next.sigaction(trigger.signal, &action, nullptr);
  }
  if (before == Returns::kAll && mtrace_status_block.handler == Handler::kForbidden)
    report::status_handler(Handler::kOurs);
}

bool ignores_triggers() { return no_handler_returns(); }

void let_triggers_through(bool on) {
  struct sigaction action = {};
  action.sa_handler = on ? SIG_DFL : SIG_IGN;
  for (const Trigger& trigger : g_triggers) {
    if (trigger.given_up && handler_of(trigger) != nullptr)
      next::g_next.sigaction(trigger.signal, &action, nullptr);
  }
}

void take_off_trigger() {
  const int signal = g_report.signal;
  // A filter of system calls may not allow the call that discards the signal.
  if (signal == 0 || base::may_be_filtered()) return;
  if (load(mtrace_status_block.handler) != Handler::kOurs) return;
  const uint64_t mask = base::block_signals();
  // A trigger that the program itself blocks stays pending over exec, as without the library.
  if ((mask >> (signal - 1) & 1) == 0) base::discard_signal(signal);
  base::restore_signals(mask);
}

MTRACE_REALIGN void end_on_signal(int number, siginfo_t* information, void*) {
  if (is_own_process()) {
    for (const FatalSignal& signal : kFatalSignals) {
      if (signal.number == number) report_fatal(signal.name);
    }
    // Fatal signals that came during the report: without the report the program would have been
    // gone.
    for (const FatalSignal& signal : kFatalSignals) base::discard_signal(signal.number);
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  next::g_next.sigaction(number, &standard, nullptr);
  base::send_again(number, information);
}

}  // namespace mtrace::life
