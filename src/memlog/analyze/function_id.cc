#include "analyze/function_id.h"

#include <string>
#include <string_view>

#include "analyze/function_name.h"
#include "profile/path.h"

namespace mtrace::analyze {
namespace {

constexpr uint64_t kBasis = 0xcbf29ce484222325;
constexpr uint64_t kPrime = 0x100000001b3;

void add(uint64_t& hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  hash = (hash ^ 0) * kPrime;  // parts the texts
}

}  // namespace

uint64_t function_id(const profile::Frames& frames, const std::vector<profile::Module>& modules) {
  if (frames.empty()) return 0;
  uint64_t hash = kBasis;
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
