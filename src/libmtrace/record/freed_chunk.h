// Whether libc itself considers a block free. glibc stores that in its chunks (malloc/malloc.c):
//
// - A small block that a thread has freed waits in that thread's cache (tcache) and has a random
//   number of the process in its second word.
// - The size of the chunk behind a free one lacks the flag PREV_INUSE.
// - A block with a mapping of its own is unmapped.
//
// A small block in a fastbin has no such sign.
#pragma once

namespace mtrace::hook {

// Learns the random number from a block that it frees. Call it while no other thread counts.
void learn_freed_chunks();

// True: `block`, which libc allocated once, is free. False: not known. Reads nothing that could
// fault. Thread-safe; async-signal-safe.
bool is_freed_chunk(const void* block);

}  // namespace mtrace::hook
