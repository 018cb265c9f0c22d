#include "model/events/event_log.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <ranges>

#include "format/event_log.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/events/chunk_reader.h"
#include "model/events/live_blocks.h"
#include "model/profile/model.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

// Throws DamagedChunk for what is no number, or more than `most`.
uint64_t number_of(std::string_view text, uint64_t most = UINT64_MAX) {
  const auto number = util::read_unsigned(text, most);
  if (!number) throw DamagedChunk();
  return *number;
}

// "TID:EVENTS TID:EVENTS ..."
void read_parent_events(EventHeader& header, std::string_view text) {
  if (text.empty()) return;
  for (const std::string_view word : util::split(text, ' ')) {
    const size_t colon = word.find(':');
    if (colon == word.npos) throw DamagedChunk();
    header.parent_events.push_back({static_cast<uint32_t>(number_of(word.substr(0, colon))),
                                    number_of(word.substr(colon + 1))});
  }
}

void read_library(EventHeader& header, std::string_view text) {
  constexpr uint64_t kMillisecond = 1'000'000;
  header.library = text;
  for (const std::string_view word : util::split(text, ' ')) {
    constexpr std::string_view kOption = "MTRACE_TEMPORARY_MS=";
    if (!word.starts_with(kOption)) continue;
    const auto value = util::read_unsigned(word.substr(kOption.size()), UINT32_MAX);
    if (value) header.short_lived = *value * kMillisecond;
  }
}

void add_left_out(EventHeader& header, std::string_view text) {
  header.left_out += (header.left_out.empty() ? "" : "; ") + std::string(text);
}

void read_before(EventHeader& header, std::string_view text) {
  BeforeFile& before = header.before;
  std::vector<uint64_t*> values = {&before.began,         &before.peak_bytes, &before.peak_blocks,
                                   &before.peak_time,     &before.reports,    &before.lost,
                                   &before.unknown_frees, &before.resident};
  for (uint64_t& calls : before.calls) values.push_back(&calls);
  size_t i = 0;
  for (const std::string_view one : util::split(text, ' ')) {
    if (i < values.size()) *values[i++] = number_of(one);
  }
}

constexpr struct {
  std::string_view name;
  void (*read)(EventHeader& header, std::string_view value);
} kKeys[] = {
    {format::kEventsProgram, [](EventHeader& to, std::string_view text) { to.program = text; }},
    {format::kEventsCommand, [](EventHeader& to, std::string_view text) { to.command = text; }},
    {format::kEventsParentLog,
     [](EventHeader& to, std::string_view text) { to.parent_log = text; }},
    {format::kEventsLibrary, read_library},
    {format::kEventsHost, [](EventHeader& to, std::string_view text) { to.host = text; }},
    {format::kEventsProcessor, [](EventHeader& to, std::string_view text) { to.processor = text; }},
    {format::kEventsBootId, [](EventHeader& to, std::string_view text) { to.boot_id = text; }},
    {format::kEventsLeftOut, add_left_out},
    {format::kEventsBefore, read_before},
    {format::kEventsForm,
     [](EventHeader& to, std::string_view text) { to.compact = text == format::kEventsCompact; }},
    {format::kEventsPid,
     [](EventHeader& to, std::string_view text) { to.pid = number_of(text, INT_MAX); }},
    {format::kEventsParent,
     [](EventHeader& to, std::string_view text) { to.parent = number_of(text, INT_MAX); }},
    {format::kEventsParentTime,
     [](EventHeader& to, std::string_view text) { to.parent_time = number_of(text); }},
    {format::kEventsParentFork,
     [](EventHeader& to, std::string_view text) { to.parent_fork = number_of(text, UINT32_MAX); }},
    {format::kEventsParentEvents, read_parent_events},
    {format::kEventsStarted,
     [](EventHeader& to, std::string_view text) { to.started = number_of(text); }},
    {format::kEventsProcessStarted,
     [](EventHeader& to, std::string_view text) { to.process_started = number_of(text); }},
};

}  // namespace

EventHeader read_header(std::string_view content) {
  EventHeader header;
  for (ColumnReader in(content); !in.empty();) {
    const std::string_view key = in.text();
    const std::string_view value = in.text();
    for (const auto& one : kKeys) {
      if (one.name == key) one.read(header, value);
    }
  }
  return header;
}

std::string before_text(const BeforeFile& before) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", before.began, before.peak_bytes,
                     before.peak_blocks, before.peak_time, before.reports, before.lost,
                     before.unknown_frees, before.resident, fmt::join(before.calls, " "));
}

std::optional<uint64_t> read_time(std::string_view text, uint64_t started) {
  constexpr uint64_t kDay = 86400 * uint64_t{1'000'000'000};
  constexpr size_t kDate = 10;  // "2026-11-22"
  if (text.size() > kDate && text[kDate] == 'T' && text.ends_with('Z')) {
    const auto time =
        util::read_instant(text.substr(0, kDate), text.substr(kDate + 1, text.size() - kDate - 2));
    if (!time) return std::nullopt;
    return static_cast<uint64_t>(*time);
  }
  const auto clock = util::read_time_of_day(text);
  if (!clock) return std::nullopt;
  // "12:04:31" of a log that began at 12:04:31.02 is that second, not one of the next day.
  constexpr uint64_t kHour = kDay / 24;
  const uint64_t time = started / kDay * kDay + *clock;
  return time + kHour < started ? time + kDay : time;
}

namespace {

constexpr size_t kPiece = 256 * 1024;  // bytes to read at once
constexpr std::string_view kMagic("\x28\xb5\x2f\xfd", 4);

int open_log(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) throw util::FileError(path, errno);
  return fd;
}

}  // namespace

FrameReader::FrameReader(const std::string& path)
    : path_(path == "-" ? "<stdin>" : path), file_(open_log(path)) {}

bool FrameReader::next(std::string& content) {
  for (;;) {
    const char* const from = buffer_.data() + used_;
    const size_t left = buffer_.size() - used_;
    const size_t size = left == 0 ? 0 : ZSTD_findFrameCompressedSize(from, left);
    const bool more = left == 0 || (ZSTD_isError(size) != 0 &&
                                    ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong &&
                                    left < format::kMostEventChunk);
    if (more) {
      if (!read_more()) return false;
      continue;
    }
    format::EventsEndEarly mark = {.magic = 0};
    if (size == sizeof mark) std::memcpy(&mark, from, sizeof mark);
    if (mark.magic == format::kEventsEndEarlyMagic) {
      early_end_ = static_cast<int>(mark.error);
      used_ += size;
      continue;
    }
    const unsigned long long held =
        ZSTD_isError(size) != 0 ? ZSTD_CONTENTSIZE_ERROR : ZSTD_getFrameContentSize(from, left);
    const bool read = held <= format::kMostEventChunk;  // the values for errors are more
    content.resize(read ? held : 0);
    if (!read || ZSTD_decompress(content.data(), content.size(), from, size) != held) {
      skip_damage();
      continue;
    }
    in_damage_ = false;
    used_ += size;
    return true;
  }
}

std::string missing_text(uint64_t damaged, const Contents& contents) {
  if (damaged != 0) return std::to_string(damaged) + " damaged chunks left out";
  const int error = contents.early_end();
  return error == 0 ? "" : std::string("the log ends early: ") + std::strerror(error);
}

bool FrameReader::read_more() {
  buffer_.erase(0, used_);
  used_ = 0;
  const size_t before = buffer_.size();
  // A long frame is looked at again each time.
  buffer_.resize(before + std::max(kPiece, before));
  ssize_t got;
  do {
    got = ::read(file_.get(), buffer_.data() + before, buffer_.size() - before);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) throw util::FileError(path_, errno);
  at_end_ = got == 0;
  return got > 0;
}

void FrameReader::skip_damage() {
  damaged_ += in_damage_ ? 0 : 1;
  const size_t found = buffer_.find(kMagic, used_ + 1);
  in_damage_ = found == std::string::npos;
  // A magic number may begin at the end of what was read.
  used_ = in_damage_
              ? std::max(used_ + 1, buffer_.size() - std::min(buffer_.size(), kMagic.size() - 1))
              : found;
}

namespace {

// A frame as a chunk has it: its module + 1, or 0, and the offset there.
struct FrameWord {
  uint64_t module;
  uint64_t offset;
};

}  // namespace

struct EventLog::State {
  explicit State(std::unique_ptr<Contents> from) : contents(std::move(from)), file(*contents) {}

  bool next_chunk();
  void inherit();
  profile::ModuleIndex add_module(const profile::Module& module);
  uint32_t add_stack(EventStack stack);
  uint32_t inherit_stack(const EventLog& parent, uint32_t number);
  bool tell_inherited(Event& event);
  [[noreturn]] void refuse(const std::string& format) const;
  void begin_chunk();
  void read_modules(ColumnReader& head);
  void read_python(ColumnReader& head);
  profile::Frame frame_of(uint64_t module, uint64_t offset) const;
  void read_stacks(ColumnReader& head);
  void read_frames(ColumnReader (&columns)[format::kStackColumns]);
  void read_threads(ColumnReader& head);
  void read_left_out();
  bool tell_left_out(Event& event);
  void decode_ahead();

  std::unique_ptr<Contents> contents;
  Contents& file;
  bool inherits = false;  // and what it inherited was not asked for yet
  unsigned generation = 0;
  std::vector<InheritedBlock> inherited;  // with stacks of this log
  size_t inherited_told = 0;
  size_t inherited_modules = 0;                              // the first of `modules`
  absl::flat_hash_map<uint64_t, uint32_t> inherited_stacks;  // by id
  BeforeFork before_fork;
  std::string problem;  // with what it inherited
  EventHeader header;
  std::vector<profile::Module> modules;
  std::vector<uint64_t> identities;  // of the modules
  std::vector<EventStack> stacks = {EventStack()};
  // By the numbers of the file, which a damaged one may make as large as it likes.
  absl::flat_hash_map<uint32_t, profile::ModuleIndex> module_numbers;
  absl::flat_hash_map<uint64_t, profile::Frame> python;  // by Python's frame
  FileNumbers numbers;
  ChunkReader events{numbers};
  std::vector<FrameWord> known_frames;  // of the chunk
  std::vector<FrameWord> frame_words;   // of the stack that was defined last
  uint64_t last_offset = 0;             // of a frame that was new; so is the stack's number
  uint32_t last_stack = 0;
  std::string head;  // the content of the first frame
  std::string content;
  std::vector<LeftOut> left_out;  // of a frame
  size_t left_out_told = 0;
  uint64_t left = 0;             // events of the chunk that are not decoded yet
  Event decoded[kDecodedAhead];  // a ring of those that next() did not return yet
  size_t decoded_at = 0;         // the first of them
  size_t decoded_count = 0;
  uint64_t steps = 0;
  uint64_t last_time = 0;
  uint64_t damaged = 0;
};

bool EventLog::State::next_chunk() {
  while (file.next(content)) {
    try {
      const std::string_view mark = std::string_view(content).substr(0, format::kEventMark);
      if (mark.starts_with(format::kEventChunkMark)) {
        if (mark.back() != '0' + format::kEventsVersion) {
          refuse(fmt::format("version {}", mark.back()));
        }
        begin_chunk();
        return true;
      }
      if (mark == format::kLeftOutMark) {
        read_left_out();
        return true;
      }
    } catch (const DamagedChunk&) {
      ++damaged;
      left = 0;
    }
  }
  return false;
}

void EventLog::State::refuse(const std::string& format) const {
  throw util::FormatError(
      file.path(), 1,
      fmt::format("the event log has {} of the format, which only the memlog of "
                  "the mtrace that wrote it can read",
                  format));
}

void EventLog::State::begin_chunk() {
  known_frames.clear();
  frame_words.clear();
  last_offset = 0;
  last_stack = 0;
  ColumnReader head(std::string_view(content).substr(format::kEventMark));
  head.number();  // of the first event
  steps = head.number_up_to(kMostSteps);
  read_modules(head);
  read_python(head);
  read_stacks(head);
  read_threads(head);
  const uint64_t count = head.number_up_to(format::kMostChunkEvents);
  const auto form = static_cast<format::EventForm>(head.byte());
  if (form != format::EventForm::kCompact && form != format::EventForm::kFull) {
    refuse("the full form of version 4");
  }
  events.begin(head, form, steps);
  left = count;
}

void EventLog::State::read_modules(ColumnReader& head) {
  for (uint64_t count = head.number(); count != 0; --count) {
    const auto number = static_cast<uint32_t>(head.number_up_to(FileNumbers::kMost));
    profile::Module module;
    module.path = head.text();
    module.generation = static_cast<uint32_t>(head.number_up_to(UINT32_MAX));
    module.build_id = head.text();
    module.base = head.number();
    module.described = true;
    module.python = module.generation == 0;
    if (module.python) module.generation = 1;
    module_numbers[number] = add_module(module);
  }
}

// Returns the index of the module; one that was inherited is not there twice.
profile::ModuleIndex EventLog::State::add_module(const profile::Module& module) {
  for (size_t i = 0; i < inherited_modules; ++i) {
    const profile::Module& known = modules[i];
    if (known.path == module.path && known.generation == module.generation &&
        known.build_id == module.build_id && known.base == module.base &&
        known.python == module.python) {
      return static_cast<profile::ModuleIndex>(i);
    }
  }
  identities.push_back(profile::identity_of(module));
  modules.push_back(module);
  return static_cast<profile::ModuleIndex>(modules.size() - 1);
}

void EventLog::State::read_python(ColumnReader& head) {
  for (uint64_t count = head.number(); count != 0; --count) {
    const uint64_t word = head.number();
    const uint64_t file = head.number();
    profile::Frame frame = frame_of(file + 1, head.number());
    const std::string_view function = head.text();
    const uint64_t line = head.number_up_to(INT32_MAX);
    frame.function = function.empty() ? std::string_view(format::kUnknownFunction) : function;
    if (line != 0 && frame.place == profile::Place::kModule) {
      const std::string& path = modules[frame.module].path;
      size_t length = 0;
      const char* const name = format::python_file_name(path.data(), path.size(), &length);
      frame.source = std::string(name, length) + ':' + std::to_string(line);
    }
    python[word] = std::move(frame);
  }
}

// `module`: as in the file, 0 for none.
profile::Frame EventLog::State::frame_of(uint64_t module, uint64_t offset) const {
  profile::Frame frame;
  frame.offset = offset;
  const bool known = module != 0 && module <= FileNumbers::kMost;
  const auto found =
      known ? module_numbers.find(static_cast<uint32_t>(module - 1)) : module_numbers.end();
  if (found != module_numbers.end()) {
    frame.place = profile::Place::kModule;
    frame.module = found->second;
    return frame;
  }
  if (module != 0 || !format::PythonFrame::is_one(offset)) return frame;
  if (const auto function = python.find(offset); function != python.end()) return function->second;
  frame.function = profile::Name(format::kPythonWithoutRoom);
  return frame;
}

void EventLog::State::read_stacks(ColumnReader& head) {
  size_t all_frames = 0;
  const uint64_t count = head.number();
  ColumnReader columns[format::kStackColumns];
  for (ColumnReader& one : columns) one = ColumnReader(head.text());
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number =
        last_stack + 1 + static_cast<uint64_t>(columns[format::kStackNumbers].signed_number());
    if (number > FileNumbers::kMost) throw DamagedChunk();
    last_stack = static_cast<uint32_t>(number);
    ColumnReader& facts = columns[format::kStackFacts];
    EventStack stack;
    stack.cut = (facts.number() & 1) != 0;
    stack.kind = facts.text();
    stack.call = facts.text();
    const uint64_t guessed = facts.number_up_to(format::kMaxDepth);
    read_frames(columns);
    all_frames += frame_words.size();
    if (all_frames > format::kMostChunkFrames) throw DamagedChunk();
    for (const FrameWord& word : frame_words) {
      profile::Frame frame = frame_of(word.module, word.offset);
      frame.guessed = guessed != 0 && stack.frames.size() == guessed;
      stack.frames.push_back(std::move(frame));
    }
    const auto identity = [&](profile::ModuleIndex module) { return identities[module]; };
    stack.id = profile::stack_ids(stack.frames, identity).value();
    numbers.stacks[last_stack] = add_stack(std::move(stack));
  }
}

void EventLog::State::read_frames(ColumnReader (&columns)[format::kStackColumns]) {
  const uint64_t shared = columns[format::kStackShared].number_up_to(frame_words.size());
  const uint64_t own = columns[format::kStackOwn].number_up_to(format::kMaxDepth - shared);
  frame_words.erase(frame_words.begin(), frame_words.end() - static_cast<ptrdiff_t>(shared));
  std::vector<FrameWord> words;
  for (uint64_t i = 0; i < own; ++i) {
    const uint64_t number = columns[format::kStackFrames].symbol();
    if (number > known_frames.size()) throw DamagedChunk();
    if (number != 0) {
      words.push_back(known_frames[number - 1]);
      continue;
    }
    const uint64_t module = columns[format::kStackModules].number();
    last_offset += static_cast<uint64_t>(columns[format::kStackOffsets].signed_number());
    words.push_back({module, last_offset});
    known_frames.push_back(words.back());
  }
  frame_words.insert(frame_words.begin(), words.begin(), words.end());
}

// Returns the number of the stack; one that was inherited is not there twice.
uint32_t EventLog::State::add_stack(EventStack stack) {
  const auto known = inherited_stacks.find(stack.id);
  if (known != inherited_stacks.end()) {
    const EventStack& one = stacks[known->second];
    if (one.kind == stack.kind && one.call == stack.call && one.cut == stack.cut &&
        one.frames.size() == stack.frames.size()) {
      return known->second;
    }
  }
  stacks.push_back(std::move(stack));
  return static_cast<uint32_t>(stacks.size() - 1);
}

// Reads what the process had from its parent, once.
void EventLog::State::inherit() {
  inherits = false;
  if (header.parent_log.empty()) return;
  if (header.before.began != 0) {
    problem = "blocks from before the fork are unknown: they are in older files of the log";
    return;
  }
  Inheritance found = read_inheritance(file.path(), header, generation);
  problem = std::move(found.problem);
  inherited = std::move(found.blocks);
  before_fork = std::move(found.before);
  std::vector<uint32_t> numbers;  // here, by those of the parent's log
  for (InheritedBlock& one : inherited) {
    uint32_t& stack = one.block.stack;
    if (stack >= numbers.size()) numbers.resize(stack + size_t{1});
    if (numbers[stack] == 0 && stack != 0) numbers[stack] = inherit_stack(*found.parent, stack);
    stack = numbers[stack];
  }
  inherited_modules = modules.size();
}

uint32_t EventLog::State::inherit_stack(const EventLog& parent, uint32_t number) {
  EventStack stack = parent.stack(number);
  for (profile::Frame& frame : stack.frames) {
    if (frame.place != profile::Place::kModule) continue;
    inherited_modules = modules.size();
    frame.module = add_module(parent.modules()[frame.module]);
  }
  const uint64_t id = stack.id;
  const uint32_t added = add_stack(std::move(stack));
  inherited_stacks.try_emplace(id, added);
  return added;
}

bool EventLog::State::tell_inherited(Event& event) {
  if (inherited_told == inherited.size()) return false;
  const InheritedBlock& one = inherited[inherited_told++];
  event = Event();
  event.kind = Kind::kInherited;
  event.call = one.block.call;
  event.stack = one.block.stack;
  event.time = last_time = std::max(last_time, header.started);
  event.address = one.address;
  event.requested = one.block.requested;
  event.usable = one.block.usable;
  event.number = one.block.time;
  if (inherited_told == inherited.size()) {
    inherited = {};
    inherited_told = 0;
  }
  return true;
}

void EventLog::State::read_threads(ColumnReader& head) {
  for (uint64_t count = head.number(); count != 0; --count) {
    const auto number = static_cast<uint32_t>(head.number_up_to(FileNumbers::kMost));
    const uint32_t index = numbers.thread(number);
    EventThread& thread = numbers.threads[index];
    thread.tid = static_cast<uint32_t>(head.number_up_to(UINT32_MAX));
    thread.name = head.text();
  }
}

// Counts of blocks without events.
void EventLog::State::read_left_out() {
  ColumnReader in(std::string_view(content).substr(format::kEventMark));
  const uint64_t time = in.number_up_to(kMostSteps);
  std::vector<LeftOut> read;
  for (uint64_t count = in.number_up_to(in.left()); count != 0; --count) {
    LeftOut one;
    const auto number = static_cast<uint32_t>(in.number_up_to(FileNumbers::kMost));
    one.stack = numbers.stack(number);
    for (uint64_t* value :
         {&one.allocations, &one.allocated, &one.frees, &one.freed, &one.short_lived, &one.lifetime,
          &one.shortest, &one.longest, &one.temporary}) {
      *value = in.number();
    }
    read.push_back(one);
  }
  last_time = std::max(last_time, header.started + time * format::kEventTimeStep);
  left_out = std::move(read);
  left_out_told = 0;
}

bool EventLog::State::tell_left_out(Event& event) {
  if (left_out_told == left_out.size()) return false;
  event = Event();
  event.kind = Kind::kLeftOut;
  event.time = last_time;
  event.left_out = &left_out[left_out_told++];
  event.stack = event.left_out->stack;
  return true;
}

// Decodes events until the ring is full.
void EventLog::State::decode_ahead() {
  try {
    for (; left != 0 && decoded_count < kDecodedAhead; --left) {
      Event& event = decoded[(decoded_at + decoded_count) % kDecodedAhead];
      event = Event();
      events.next(event, steps);
      last_time = event.time = std::max(last_time, header.started + steps * format::kEventTimeStep);
      if (event.kind == Kind::kInherited) {  // it is the age
        event.number = last_time - std::min(last_time, event.number * format::kEventTimeStep);
      }
      if (event.kind != Kind::kUnknown) ++decoded_count;
    }
  } catch (const DamagedChunk&) {
    ++damaged;
    left = 0;
  }
}

EventLog::EventLog(const std::string& path, unsigned generation)
    : EventLog(std::make_unique<FrameReader>(path)) {
  state_->inherits = true;
  state_->generation = generation;
}

EventLog::EventLog(std::unique_ptr<Contents> contents)
    : state_(std::make_unique<State>(std::move(contents))) {
  State& state = *state_;
  const bool any = state.file.next(state.content);
  const std::string_view content = state.content;
  if (!any || content.substr(0, format::kEventMark) != format::kEventHeaderMark) {
    throw util::FormatError(state.file.path(), 1,
                            any || state.file.damaged() != 0 || state.file.cut_short()
                                ? "this is no event log (memlog run --events writes one)"
                                : "the file is empty: no event log");
  }
  state.head = state.content;
  try {
    state.header = read_header(content.substr(format::kEventMark));
  } catch (const DamagedChunk&) {
    throw util::FormatError(state.file.path(), 1, "the header of the event log is damaged");
  }
}

EventLog::~EventLog() = default;

bool EventLog::next(Event& event) {
  State& state = *state_;
  if (state.inherits) state.inherit();
  for (;;) {
    if (state.left != 0) state.decode_ahead();
    if (state.decoded_count != 0) {
      event = state.decoded[state.decoded_at];
      state.decoded_at = (state.decoded_at + 1) % kDecodedAhead;
      --state.decoded_count;
      return true;
    }
    if (state.tell_inherited(event) || state.tell_left_out(event)) return true;
    if (!state.next_chunk()) return false;
  }
}

const Event* EventLog::coming(size_t calls) const {
  const State& state = *state_;
  return calls < state.decoded_count ? &state.decoded[(state.decoded_at + calls) % kDecodedAhead]
                                     : nullptr;
}

std::string address_text(uint64_t address) {
  return is_numbered(address) ? fmt::format("#{}", block_number(address))
                              : fmt::format("0x{:x}", address);
}

uint64_t EventLog::address_of(uint64_t numbered) const {
  return is_numbered(numbered) ? state_->events.address_of(numbered) : numbered;
}

const std::string& EventLog::missing_inheritance() const { return state_->problem; }
const BeforeFork& EventLog::before_fork() const { return state_->before_fork; }

bool EventLog::skip_chunk() {
  if (state_->inherits) state_->inherit();
  state_->inherited = {};
  const bool any = state_->next_chunk();
  state_->left = 0;
  state_->decoded_count = 0;
  state_->left_out.clear();
  return any;
}

const std::string& EventLog::path() const { return state_->file.path(); }
std::string_view EventLog::head() const { return state_->head; }
const EventHeader& EventLog::header() const { return state_->header; }
const EventStack& EventLog::stack(uint32_t number) const {
  return state_->stacks[number < state_->stacks.size() ? number : 0];
}
const char* EventLog::call(uint32_t number, uint8_t hook) const {
  const std::string& known = stack(number).call;
  return known.empty() ? format::kCallNames[hook] : known.c_str();
}
uint32_t EventLog::stack_count() const { return static_cast<uint32_t>(state_->stacks.size() - 1); }
const std::vector<profile::Module>& EventLog::modules() const { return state_->modules; }
const EventThread& EventLog::thread(uint32_t number) const {
  const std::vector<EventThread>& threads = state_->numbers.threads;
  return threads[number < threads.size() ? number : 0];
}
uint32_t EventLog::thread_count() const {
  return static_cast<uint32_t>(state_->numbers.threads.size() - 1);
}
uint64_t EventLog::damaged_chunks() const { return state_->damaged + state_->file.damaged(); }
std::string EventLog::missing() const { return missing_text(damaged_chunks(), state_->file); }
bool EventLog::cut_short() const { return state_->file.cut_short(); }

}  // namespace mtrace::events
