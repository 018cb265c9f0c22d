// Stacks and threads by their numbers in the file of an event log.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "model/events/event_log.h"

namespace mtrace::events {

// A damaged file may make its numbers as large as it likes; those that this returns have no gaps.
struct FileNumbers {
  static constexpr uint32_t kMost = UINT32_MAX;

  // 0 if the definition was lost.
  uint32_t stack(uint32_t in_file) const {
    const auto found = stacks.find(in_file);
    return found != stacks.end() ? found->second : 0;
  }
  // A thread may be met before it is defined.
  uint32_t thread(uint32_t in_file) {
    if (in_file == 0) return 0;
    const auto [at, fresh] =
        thread_numbers.try_emplace(in_file, static_cast<uint32_t>(threads.size()));
    if (fresh) threads.emplace_back();
    return at->second;
  }

  absl::flat_hash_map<uint32_t, uint32_t> stacks;
  absl::flat_hash_map<uint32_t, uint32_t> thread_numbers;
  std::vector<EventThread> threads = {EventThread()};
};

}  // namespace mtrace::events
