#include "surface/sql/functions.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <new>
#include <stdexcept>

#include "surface/sql/tables.h"
#include "surface/sql/virtual_table.h"
#include "view/analyze/suppressions.h"

namespace mtrace::sql {
namespace {

struct FunctionData {
  StackBook* stacks;
  std::exception_ptr* failure;
};

// The arguments of a call.
class Arguments {
 public:
  Arguments(int count, sqlite3_value** values) : count_(count), values_(values) {}

  int count() const { return count_; }
  bool null(int at) const { return sqlite3_value_type(values_[at]) == SQLITE_NULL; }
  int64_t number(int at) const { return sqlite3_value_int64(values_[at]); }
  std::string_view text(int at) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values_[at]));
    if (text == nullptr) return {};
    return {text, static_cast<size_t>(sqlite3_value_bytes(values_[at]))};
  }
  // A time: nanoseconds, or a text near the time `near`.
  int64_t instant(int at, int64_t near) const {
    if (sqlite3_value_numeric_type(values_[at]) == SQLITE_INTEGER) return number(at);
    if (const auto time = read_instant(text(at), near)) return *time;
    throw std::runtime_error(
        fmt::format("{} is not a time: write nanoseconds since 1970, '2026-11-20T20:15:31.5Z' or "
                    "'20:15:31.5' (UTC)",
                    text(at)));
  }

 private:
  int count_;
  sqlite3_value** values_;
};

// No exception may pass through SQLite's frames.
template <typename Action>
void guarded_call(sqlite3_context* context, Action action) {
  const auto* known = static_cast<FunctionData*>(sqlite3_user_data(context));
  try {
    action(*known->stacks);
  } catch (const Interrupted&) {
    sqlite3_result_error_code(context, SQLITE_INTERRUPT);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  } catch (const std::exception& error) {
    *known->failure = std::current_exception();
    sqlite3_result_error(context, error.what(), -1);
  }
}

// What a call keeps for the next row: a compiled pattern. The argument at `at` is the same in all
// rows, or SQLite drops it.
template <typename T, typename Make>
T& kept(sqlite3_context* context, int at, Make make) {
  if (auto* known = static_cast<T*>(sqlite3_get_auxdata(context, at))) return *known;
  auto* fresh = new T(make());
  sqlite3_set_auxdata(context, at, fresh, [](void* data) { delete static_cast<T*>(data); });
  // Null: there was no memory for it, and SQLite has freed it.
  if (sqlite3_get_auxdata(context, at) == nullptr) throw std::bad_alloc();
  return *fresh;
}

void stack_text_call(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook& stacks) {
    const auto stack = stacks.find(Arguments(count, values).text(0));
    if (stack) Cell(context).put(stacks.text(*stack));
  });
}

void own_frame(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook& stacks) {
    const auto stack = stacks.find(Arguments(count, values).text(0));
    const auto own = stack ? stacks.own(*stack) : std::nullopt;
    if (own) Cell(context).put(stacks.function(*stack, *own));
  });
}

void matches(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook& stacks) {
    const Arguments arguments(count, values);
    if (arguments.null(0) || arguments.null(1)) return;
    const auto& pattern = kept<analyze::FramePattern>(
        context, 1, [&] { return analyze::FramePattern(arguments.text(1)); });
    const auto stack = stacks.find(arguments.text(0));
    if (!stack) return;
    const profile::Frames& frames = stacks.stack(*stack).frames;
    bool found = false;
    for (size_t i = 0; !found && i < frames.size(); ++i) {
      found = pattern.matches(frames, i, stacks.modules());
    }
    Cell(context).put(int64_t{found});
  });
}

void regexp(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (arguments.null(0) || arguments.null(1)) return;
    const auto& pattern = kept<std::unique_ptr<re2::RE2>>(
        context, 0, [&] { return analyze::compile(arguments.text(0)); });
    Cell(context).put(int64_t{re2::RE2::PartialMatch(arguments.text(1), *pattern)});
  });
}

void alive_at(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (arguments.null(0) || arguments.null(2)) return;
    const int64_t born = arguments.number(0);
    const int64_t when = arguments.instant(2, born);
    const bool alive = born <= when && (arguments.null(1) || when < arguments.number(1));
    Cell(context).put(int64_t{alive});
  });
}

void time_of(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (!arguments.null(0)) Cell(context).put(time_text(arguments.number(0)));
  });
}

void instant(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded_call(context, [&](StackBook&) {
    const Arguments arguments(count, values);
    if (!arguments.null(0)) Cell(context).put(arguments.instant(0, 0));
  });
}

struct Function {
  FunctionText text;
  int arguments;
  void (*call)(sqlite3_context*, int, sqlite3_value**);
};

const Function kFunctions[] = {
    {{"stack_text", "stack_text(stack)",
      "the functions of a stack, innermost first: 'f < g < main'"},
     1,
     stack_text_call},
    {{"own_frame", "own_frame(stack)",
      "the function of own code that is responsible; null: the stack was cut before it"},
     1,
     own_frame},
    {{"matches", "matches(stack, regex)",
      "1 if a frame matches: its function, source line or module, as --include"},
     2,
     matches},
    {{"alive_at", "alive_at(allocated_at, freed_at, time)",
      "1 if the block lived then; time as a number, or as a text: '20:15:31.5' (UTC)"},
     3,
     alive_at},
    {{"time_text", "time_text(ns)", "a time as text: '2026-11-20T20:15:31.123456Z'"}, 1, time_of},
    {{"instant", "instant(text)", "the nanoseconds since 1970 of such a text"}, 1, instant},
    {{"regexp", "text REGEXP regex", "1 if a part of the text matches (RE2)"}, 2, regexp},
};

}  // namespace

const std::vector<FunctionText>& functions() {
  static const std::vector<FunctionText> all = [] {
    std::vector<FunctionText> texts;
    for (const Function& one : kFunctions) texts.push_back(one.text);
    return texts;
  }();
  return all;
}

void add_functions(sqlite3* connection, StackBook& stacks, std::exception_ptr& failure) {
  const auto destroy = [](void* known) { delete static_cast<FunctionData*>(known); };
  for (const Function& one : kFunctions) {
    const int result = sqlite3_create_function_v2(
        connection, one.text.name, one.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
        new FunctionData{&stacks, &failure}, one.call, nullptr, nullptr, destroy);
    if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(connection));
  }
}

}  // namespace mtrace::sql
