#include "model/profile/builder.h"

#include <algorithm>
#include <memory>

#include "format/memlog.h"
#include "model/profile/entry_checks.h"
#include "model/profile/header.h"
#include "model/profile/line.h"
#include "model/profile/writer.h"
#include "util/error.h"

namespace mtrace::profile {

void Builder::add_meta(Field line) {
  after_ |= !memlog_.entries.empty() || section_of(line.key) == Section::kAfter;
  (after_ ? memlog_.after : memlog_.before).push_back(std::move(line));
}

ModuleIndex Builder::module(const Module& module) {
  const ModuleIndex index = modules_.index(module.path, module.generation);
  if (!modules_[index].described) modules_[index] = module;
  return index;
}

void Builder::describe_modules() {
  for (ModuleIndex i = 0; i < modules_.size(); ++i) {
    if (modules_[i].described) add_meta({format::kKeyModule, module_text(modules_[i])});
  }
}

void Builder::expect(const Rests& rests) {
  for (size_t i = 0; i < rests.size(); ++i) {
    const uint64_t next = i + 1 < rests.size() ? rests[i + 1] : 0;
    const auto [at, fresh] = rests_.try_emplace(rests[i], Rest{next});
    at->second.shared |= !fresh && (next == 0 || at->second.next != next);
  }
}

// Returns the number of the longest rest that others have, too, of the first `most`; 0: none.
size_t Builder::shared_rest(const Rests& rests, size_t most) const {
  size_t rest = std::min(most, rests.size());
  while (rest > 0 && !rests_.at(rests[rest - 1]).shared) --rest;
  return rest;
}

// Takes the longest shared rest of the first `most` from the end of `frames`.
Frames::Rest Builder::take_rest(Frames::List& frames, const Rests& rests, size_t most) {
  const size_t rest = shared_rest(rests, most);
  if (rest == 0) return nullptr;
  const auto begin = frames.end() - static_cast<ptrdiff_t>(rest * StackIds::kStep);
  Frames::List own(begin, frames.end());
  frames.erase(begin, frames.end());
  Rest& known = rests_.at(rests[rest - 1]);
  if (known.frames == nullptr) {
    const Frames::Rest further = take_rest(own, rests, rest - 1);
    Frames tail(std::move(own), further);
    tail.set_tail(rests[rest - 1]);
    known.frames = std::make_shared<const Frames>(std::move(tail));
  }
  return known.frames;
}

void Builder::add(Entry entry, Frames::List frames, const Rests& rests,
                  const std::string& further) {
  entry.tells_live = true;
  entry.further = !further.empty();
  entry.fields = fields_of(entry, further);
  size_t least = format::kUntailedFrames;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].guessed) least = std::max(least, i + 1);
    if (frames[i].function.text() == format::kUnknownFunction) frames[i].function = {};
  }
  const size_t most = frames.size() > least ? (frames.size() - least) / StackIds::kStep : 0;
  Frames::Rest rest = take_rest(frames, rests, most);
  entry.frames = Frames(std::move(frames), std::move(rest));
  memlog_.entries.push_back(std::move(entry));
}

Memlog Builder::finish() {
  try {
    std::vector<std::string> seen;
    EntryChecks checks;
    const auto read = [&](const std::vector<Field>& lines) {
      for (const Field& line : lines) {
        if (line.key != format::kKeyModule) {
          read_header_line(line, memlog_.header, modules_, seen);
        }
      }
    };
    read(memlog_.before);
    for (Entry& entry : memlog_.entries) {
      check_numbers(entry);
      checks.add(entry, memlog_.header);
    }
    read(memlog_.after);
    checks.check_delta(memlog_.header);
    checks.check_live(memlog_.header);
    checks.conclude(memlog_.header);
  } catch (const LineError& error) {
    throw util::FormatError(memlog_.name, 1, error.what);
  }
  memlog_.modules = modules_.take();
  return std::move(memlog_);
}

}  // namespace mtrace::profile
