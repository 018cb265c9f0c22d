#include "model/profile/model.h"

#include <absl/container/node_hash_set.h>
#include <pthread.h>

namespace mtrace::profile {
namespace {

// Held across fork: children make names, too.
constinit std::mutex g_lock;
[[maybe_unused]] const int g_held_across_fork =
    ::pthread_atfork([] { g_lock.lock(); }, [] { g_lock.unlock(); }, [] { g_lock.unlock(); });

}  // namespace

const std::string Name::kNone;

Name::Name(std::string_view text) {
  if (text.empty()) return;
  // Never destroyed: names may be used until the very end.
  static auto& names = *new absl::node_hash_set<std::string, NameHash, std::equal_to<>>;
  const std::lock_guard<std::mutex> lock(g_lock);
  auto known = names.find(text);
  if (known == names.end()) known = names.emplace(text).first;
  text_ = &*known;
}

}  // namespace mtrace::profile
