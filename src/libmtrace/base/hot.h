// The few variables that every malloc and free reads, each of them defined where it belongs, lie
// side by side: a program whose own work fills the caches waits for each line and each page that
// it has to fetch again. They are written before the first allocation is recorded, or seldom.
#pragma once

// Stands at the definition. Not for inline variables, which the compiler keeps in sections of their
// own.
#define MTRACE_HOT [[gnu::section("mtrace_hot")]]
// For a table that would keep them apart: beside them.
#define MTRACE_HOT_TABLE [[gnu::section("mtrace_hot_table")]]
