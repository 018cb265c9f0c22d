// Whether libc itself holds a block for free. glibc keeps that in its chunks (malloc/malloc.c):
//
// - A small block that a thread has freed waits in that thread's cache (tcache) and has a random
//   number of the process in its second word.
// - The size of the chunk behind a free one lacks the flag PREV_INUSE.
// - A block with a mapping of its own is unmapped.
//
// Of a small block that waits in a fastbin nothing shows it.
#pragma once

namespace mtrace::hook {

// Learns the number, by a block that it frees. While no other thread counts.
void learn_freed_chunks();

// True: `block`, which libc allocated once, is free. False: it may be either. Reads nothing that
// could fault. Thread-safe; async-signal-safe.
bool is_freed_chunk(const void* block);

}  // namespace mtrace::hook
