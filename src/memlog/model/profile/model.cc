#include "model/profile/model.h"

#include <absl/container/node_hash_set.h>

namespace mtrace::profile {

const std::string Name::kNone;

Name::Name(std::string_view text) {
  if (text.empty()) return;
  // Never destroyed: names may be used until the very end.
  static auto& names = *new absl::node_hash_set<std::string, NameHash, std::equal_to<>>;
  auto known = names.find(text);
  if (known == names.end()) known = names.emplace(text).first;
  text_ = &*known;
}

}  // namespace mtrace::profile
