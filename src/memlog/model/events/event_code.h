// Events and their codes in an event log.
#pragma once

#include <cstdint>

#include "model/events/column.h"
#include "model/events/event_log.h"

namespace mtrace::events {

// The code of an event, with its call in the low four bits. 0: the kind has none.
uint8_t code_of(const Event& event);

// Sets kind and call. The kind of a code that is not known is kUnknown.
void set_code(Event& event, uint8_t code);

// Of the code: its kind, and whether its events have a stack.
Kind kind_of(uint8_t code);
bool has_stack(uint8_t code);

// Whether the call asks for an alignment. That of the event's block, as an exponent of two: at most
// kMostAlignment, at least what malloc gives anyway.
bool aligns(uint8_t call);
inline constexpr uint8_t kLeastAlignment = 4;
inline constexpr uint8_t kMostAlignment = 21;  // a huge page
uint8_t alignment_of(const Event& event);

// Whether a free of that call is the end of realloc(block, 0).
bool reallocates(uint8_t call);

// The usable size of a block, as the difference from what glibc would give.
void put_usable(Column& out, uint64_t requested, uint64_t usable);
uint64_t read_usable(ColumnReader& in, uint64_t requested);

// What reports, notes, memory, losses, forks and ends have; nothing of other kinds.
void put_more(Column& out, const Event& event);
void read_more(ColumnReader& in, Event& event);

}  // namespace mtrace::events
