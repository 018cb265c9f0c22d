#include "model/profile/known_stacks.h"

#include <algorithm>

namespace mtrace::profile {
namespace {

// Numbers are never used again, so that whoever has seen one knows the list for good.
uint64_t last_number = 0;

}  // namespace

void KnownStacks::begin(const Header& header, ModuleTable& modules) {
  const std::string process =
      header.started + '\0' + std::to_string(header.pid) + '\0' + header.program;
  // The frames of a report that broke off may name modules that are not known.
  if (process != process_ || !ended_) {
    stacks_.clear();
    modules_.clear();
    process_ = process;
  }
  ended_ = false;
  modules.adopt(modules_);
}

void KnownStacks::end(const std::vector<Module>& modules) {
  for (size_t i = modules_.size(); i < modules.size(); ++i) {
    modules_.push_back({modules[i].path, modules[i].generation, "", 0, false});
  }
  ended_ = true;
}

const KnownStacks::Stack* KnownStacks::find(uint64_t id, std::string_view ahead) const {
  const auto found = stacks_.find(id);
  if (found == stacks_.end() || !ahead.starts_with(found->second.text)) return nullptr;
  const size_t size = found->second.text.size();
  // What follows may be one more frame.
  return size < ahead.size() && ahead[size] != '\t' ? &found->second : nullptr;
}

void KnownStacks::add(uint64_t id, std::string_view text, Frames& frames, bool cut) {
  frames.set_number(++last_number);
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  stacks_.try_emplace(id, Stack{std::string(text), lines, frames, cut});
}

}  // namespace mtrace::profile
