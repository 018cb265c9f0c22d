#include "model/profile/timeline.h"

#include "format/memlog.h"
#include "format/timeline.h"
#include "model/profile/line.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

void take_meta(Timeline& timeline, const Field& line) {
  if (line.key == format::kKeyProgram) timeline.program = unescape_or_throw(line.value);
  if (line.key == format::kKeyPid) {
    timeline.pid = static_cast<int64_t>(util::read_unsigned(line.value, INT64_MAX).value_or(0));
  }
  if (line.key == format::kKeyStarted && util::is_time(line.value)) timeline.started = line.value;
  if (line.key == format::kKeyInterval && line.value.ends_with(" ms")) {
    const std::string_view number = std::string_view(line.value).substr(0, line.value.size() - 3);
    timeline.interval = util::read_unsigned(number).value_or(0);
  }
}

Sample read_sample(std::string_view line, const std::vector<Sample>& before) {
  const std::vector<std::string_view> parts = util::split(line, '\t');
  uint64_t numbers[5] = {};
  if (parts.size() != std::size(numbers)) throw LineError{"a sample has five numbers"};
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = util::read_unsigned(parts[i], INT64_MAX);
    if (!number) throw LineError{"not a number: " + message_quoted(parts[i])};
    numbers[i] = *number;
  }
  if (!before.empty() && numbers[0] <= before.back().milliseconds) {
    throw LineError{"its time does not come after that of the sample before"};
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

}  // namespace

void add(Sample& sample, const Sample& later) {
  sample.milliseconds = later.milliseconds;
  if (later.live >= sample.live) {
    sample.live = later.live;
    sample.blocks = later.blocks;
  }
  sample.resident = std::max(sample.resident, later.resident);
  sample.allocations += later.allocations;
}

void Timeline::halve() {
  for (size_t i = 0; i + 1 < samples.size(); i += 2) {
    add(samples[i], samples[i + 1]);
    samples[i / 2] = samples[i];
  }
  if (samples.size() % 2 != 0) samples[samples.size() / 2] = samples.back();
  samples.resize((samples.size() + 1) / 2);
  interval *= 2;
}

std::string write(const Timeline& timeline) {
  std::string out =
      fmt::format("{}\n# {}: {}\n# {}: {}\n# {}: {}\n# {}: {} ms\n{}\n", format::kTimelineMagic,
                  format::kKeyProgram, util::escaped(timeline.program, ""), format::kKeyPid,
                  timeline.pid, format::kKeyStarted, timeline.started, format::kKeyInterval,
                  timeline.interval, format::kTimelineColumns);
  for (const Sample& sample : timeline.samples) {
    out += fmt::format("{}\t{}\t{}\t{}\t{}\n", sample.milliseconds, sample.live, sample.blocks,
                       sample.resident, sample.allocations);
  }
  return out + format::kEndLine + '\n';
}

Timeline read_timeline(const std::string& path) {
  const std::string text = util::read_file(path);
  std::vector<std::string_view> lines = util::split(text, '\n');
  if (lines[0] != format::kTimelineMagic) throw util::FormatError(path, 1, "not a timeline");
  if (lines.size() < 2 || !lines.back().empty() || lines[lines.size() - 2] != format::kEndLine) {
    throw util::FormatError(path, lines.size(), "incomplete: its last line is not \"# end\"");
  }
  Timeline timeline;
  for (size_t i = 1; i + 2 < lines.size(); ++i) {
    try {
      if (lines[i].starts_with('#')) {
        take_meta(timeline, read_meta(lines[i]));
      } else {
        timeline.samples.push_back(read_sample(lines[i], timeline.samples));
      }
    } catch (const LineError& error) {
      throw util::FormatError(path, i + 1, error.what);
    }
  }
  if (timeline.pid == 0 || timeline.started.empty() || timeline.interval == 0) {
    throw util::FormatError(path, 1, "lacks one of pid, started and interval");
  }
  return timeline;
}

}  // namespace mtrace::profile
