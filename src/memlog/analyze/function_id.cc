#include "analyze/function_id.h"

#include <string>
#include <string_view>

#include "analyze/function_name.h"
#include "format/memlog.h"
#include "profile/path.h"

namespace mtrace::analyze {
namespace {

void add(uint64_t& hash, std::string_view text) {
  hash = format::fnv1a(text.data(), text.size(), hash);
  hash = format::fnv1a("", 1, hash);  // parts the texts
}

}  // namespace

uint64_t function_id(const profile::Frames& frames, const std::vector<profile::Module>& modules) {
  if (frames.empty()) return 0;
  uint64_t hash = format::kFnv1aBasis;
  for (size_t i = 0; i < frames.size(); ++i) {
    const profile::Frame& frame = frames[i];
    if (!frame.function.empty()) {
      add(hash, called_name(frame.function.text()));
    } else if (frame.place == profile::Place::kModule) {
      add(hash, profile::base_name(modules[frame.module].path));
    } else {
      add(hash, "");
    }
  }
  return hash;
}

}  // namespace mtrace::analyze
