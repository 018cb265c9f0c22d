// Places the few variables that every malloc and free reads side by side, though each is defined
// where it belongs: a program whose own work fills the caches waits for each line and each page
// that is fetched again. They are written before the first allocation is recorded, or seldom.
#pragma once

// Goes at the definition. Not for inline variables, which the compiler puts in sections of their
// own.
#define MTRACE_HOT [[gnu::section("mtrace_hot")]]
// For a table, which would spread the variables apart: placed next to them.
#define MTRACE_HOT_TABLE [[gnu::section("mtrace_hot_table")]]
