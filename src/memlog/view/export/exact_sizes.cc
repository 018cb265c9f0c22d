#include "view/export/exact_sizes.h"

#include <fmt/format.h>

#include <stdexcept>

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "util/file.h"
#include "util/text.h"
#include "util/time.h"
#include "view/heap/block_sizes.h"

namespace mtrace::exporting {

std::map<size_t, StackSizes> exact_sizes(const std::string& path,
                                         const std::vector<profile::Header>& headers) {
  const events::EventHeader header = events::EventLog(path).header();
  const std::string begun = util::time_text(header.started);
  const profile::Header& last = headers.back();
  if (header.pid != last.pid || begun < last.started || begun > last.taken) {
    throw std::runtime_error(
        fmt::format("{}: the log of another process: {}[{}], begun at {}", util::escaped(path, ""),
                    util::escaped(util::base_name(header.program), ""), header.pid, begun));
  }
  std::map<size_t, StackSizes> sizes;
  events::each_report(path, [&](uint64_t number, const events::EventLog& log,
                                const events::LiveBlocks& blocks) {
    for (size_t i = 0; i < headers.size(); ++i) {
      if (headers[i].seq != static_cast<int64_t>(number)) continue;
      StackSizes& stacks = sizes[i + 1];
      blocks.for_each([&](uint64_t, const events::LiveBlock& block) {
        analyze::SizeClass& sum =
            stacks[log.stack(block.stack).id][analyze::SizeHistogram::class_of(block.requested)];
        ++sum.blocks;
        sum.bytes += block.requested;
      });
    }
  });
  if (sizes.empty()) {
    throw std::runtime_error(
        fmt::format("{}: the log has none of these reports", util::escaped(path, "")));
  }
  return sizes;
}

}  // namespace mtrace::exporting
