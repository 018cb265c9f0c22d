#include "model/events/event_log.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/event_log.h"
#include "format/memlog.h"
#include "format/python.h"
#include "model/events/block_addresses.h"
#include "model/events/column.h"
#include "model/events/event_header.h"
#include "model/events/frame_reader.h"
#include "model/events/inheritance.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

using format::EventCode;

constexpr uint32_t kMostNumber = UINT32_MAX;  // of modules, stacks and threads

// A time that cannot be represented is a damaged one.
constexpr uint64_t kMostSteps = uint64_t{1} << 56;
// By the code of the event, those below EventCode::kAllocation.
constexpr Kind kWithoutCall[] = {
    Kind::kUnknown, Kind::kReallocBegin, Kind::kReallocFailed, Kind::kMap,
    Kind::kUnmap,   Kind::kRemap,        Kind::kThreadBegin,   Kind::kThreadEnd,
    Kind::kNote,    Kind::kReport,       Kind::kStart,         Kind::kStop,
    Kind::kMemory,  Kind::kLost,         Kind::kEnd,           Kind::kFork};

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
  void begin_chunk(bool first_version);
  void read_modules(ColumnReader& head);
  void read_python(ColumnReader& head);
  profile::Frame frame_of(uint64_t module, uint64_t offset) const;
  void read_stacks(ColumnReader& head);
  void read_frames(ColumnReader& head);
  void read_threads(ColumnReader& head);
  void read_left_out();
  bool tell_left_out(Event& event);
  void decode_ahead();
  void decode(Event& event);
  void switch_thread();

  ColumnReader& column(format::EventColumn which) { return columns[which]; }
  uint64_t address() {
    return addresses[event_thread].decode(columns[format::kAddressColumn].number());
  }
  uint64_t freed();
  uint64_t moved_from();
  uint64_t allocated(uint64_t requested);
  // 0 if its definition was lost.
  uint32_t stack_number() {
    const auto found = stack_numbers.find(
        static_cast<uint32_t>(columns[format::kStackColumn].number_up_to(kMostNumber)));
    return found != stack_numbers.end() ? found->second : 0;
  }
  // The thread with that number in the file, which may be met before it is defined.
  uint32_t thread_number(uint32_t number) {
    if (number == 0) return 0;
    const auto [at, fresh] =
        thread_numbers.try_emplace(number, static_cast<uint32_t>(threads.size()));
    if (fresh) threads.emplace_back();
    return at->second;
  }
  void read_place(Event& event) {
    event.requested = columns[format::kSizeColumn].number();
    event.usable = std::max(
        event.requested, format::usual_usable_size(event.requested) +
                             static_cast<uint64_t>(columns[format::kUsableColumn].signed_number()));
    event.stack = stack_number();
  }

  std::unique_ptr<Contents> contents;
  Contents& file;
  bool inherits = false;  // and what it inherited was not asked for yet
  unsigned generation = 0;
  std::vector<InheritedBlock> inherited;  // with stacks of this log
  size_t inherited_told = 0;
  size_t inherited_modules = 0;                              // the first of `modules`
  absl::flat_hash_map<uint64_t, uint32_t> inherited_stacks;  // by id
  std::string problem;                                       // with what it inherited
  EventHeader header;
  std::vector<profile::Module> modules;
  std::vector<uint64_t> identities;  // of the modules
  std::vector<EventStack> stacks = {EventStack()};
  std::vector<EventThread> threads = {EventThread()};
  // By the numbers of the file, which a damaged one may make as large as it likes.
  absl::flat_hash_map<uint32_t, profile::ModuleIndex> module_numbers;
  absl::flat_hash_map<uint64_t, profile::Frame> python;  // by Python's frame, or address
  absl::flat_hash_map<uint32_t, uint32_t> stack_numbers;
  absl::flat_hash_map<uint32_t, uint32_t> thread_numbers;
  bool first_version = false;              // of the format, has the chunk
  std::vector<RecentAddresses> addresses;  // by thread
  BlockHistory blocks;                     // of the chunk
  std::vector<FrameWord> known_frames;     // of the chunk
  std::vector<FrameWord> frame_words;      // of the stack that was defined last
  std::string head;                        // the content of the first frame
  std::string content;
  std::vector<LeftOut> left_out;  // of a frame
  size_t left_out_told = 0;
  ColumnReader columns[format::kEventColumns];
  uint64_t left = 0;             // events of the chunk that are not decoded yet
  Event decoded[kDecodedAhead];  // a ring of those that next() did not return yet
  size_t decoded_at = 0;         // the first of them
  size_t decoded_count = 0;
  uint64_t steps = 0;
  uint64_t last_time = 0;
  uint32_t event_thread = 0;
  uint64_t damaged = 0;
};

bool EventLog::State::next_chunk() {
  while (file.next(content)) {
    try {
      const std::string_view mark = std::string_view(content).substr(0, format::kEventMark);
      if (mark == format::kEventChunkMark || mark == format::kUnmapStackChunkMark ||
          mark == format::kFirstEventChunkMark) {
        begin_chunk(mark == format::kFirstEventChunkMark);
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

void EventLog::State::begin_chunk(bool of_first_version) {
  first_version = of_first_version;
  known_frames.clear();
  frame_words.clear();
  ColumnReader head(std::string_view(content).substr(format::kEventMark));
  head.number();  // of the first event
  steps = head.number_up_to(kMostSteps);
  read_modules(head);
  read_python(head);
  read_stacks(head);
  read_threads(head);
  const uint64_t events =
      head.number_up_to(first_version ? UINT64_MAX : uint64_t{format::kMostChunkEvents});
  for (size_t i = 0; i < std::size(columns); ++i) {
    const bool there = i < format::kFirstEventColumns || !first_version;
    columns[i] = ColumnReader(there ? head.text() : std::string_view());
  }
  left = events;
  event_thread = 0;
  addresses.assign(1, RecentAddresses());
  blocks = BlockHistory();
}

void EventLog::State::read_modules(ColumnReader& head) {
  for (uint64_t count = head.number(); count != 0; --count) {
    const auto number = static_cast<uint32_t>(head.number_up_to(kMostNumber));
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
  const std::string& name = module.build_id.empty() ? module.path : module.build_id;
  identities.push_back(format::module_identity(name.data(), name.size()));
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
  const bool known = module != 0 && module <= kMostNumber;
  const auto found =
      known ? module_numbers.find(static_cast<uint32_t>(module - 1)) : module_numbers.end();
  if (found != module_numbers.end()) {
    frame.place = profile::Place::kModule;
    frame.module = found->second;
    return frame;
  }
  if (module != 0) return frame;
  if (const auto function = python.find(offset); function != python.end()) return function->second;
  if (!format::PythonFrame::is_one(offset)) return frame;
  frame.function = profile::Name(format::kPythonWithoutRoom);
  return frame;
}

void EventLog::State::read_stacks(ColumnReader& head) {
  size_t all_frames = 0;
  for (uint64_t count = head.number(); count != 0; --count) {
    const auto number = static_cast<uint32_t>(head.number_up_to(kMostNumber));
    EventStack stack;
    stack.cut = (head.number() & 1) != 0;
    stack.kind = head.text();
    stack.call = head.text();
    const uint64_t guessed = head.number_up_to(format::kMaxDepth);
    format::StackId id;
    read_frames(head);
    all_frames += frame_words.size();
    if (!first_version && all_frames > format::kMostChunkFrames) throw DamagedChunk();
    for (const FrameWord& word : frame_words) {
      profile::Frame frame = frame_of(word.module, word.offset);
      const bool in_module = frame.place == profile::Place::kModule;
      frame.guessed = guessed != 0 && stack.frames.size() == guessed;
      id.add(in_module ? identities[frame.module] : 0, frame.offset);
      stack.frames.push_back(std::move(frame));
    }
    stack.id = id.value();
    stack_numbers[number] = add_stack(std::move(stack));
  }
}

void EventLog::State::read_frames(ColumnReader& head) {
  const uint64_t shared = first_version ? 0 : head.number_up_to(frame_words.size());
  const uint64_t own = head.number_up_to(format::kMaxDepth - shared);
  frame_words.erase(frame_words.begin(), frame_words.end() - static_cast<ptrdiff_t>(shared));
  std::vector<FrameWord> words;
  for (uint64_t i = 0; i < own; ++i) {
    const uint64_t number = first_version ? 0 : head.number_up_to(known_frames.size());
    if (number != 0) {
      words.push_back(known_frames[number - 1]);
      continue;
    }
    const uint64_t module = head.number();
    words.push_back({module, head.number()});
    if (!first_version) known_frames.push_back(words.back());
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
  Inheritance found = read_inheritance(file.path(), header, generation);
  problem = std::move(found.problem);
  inherited = std::move(found.blocks);
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
    const auto number = static_cast<uint32_t>(head.number_up_to(kMostNumber));
    EventThread& thread = threads[thread_number(number)];
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
    const auto number = static_cast<uint32_t>(in.number_up_to(kMostNumber));
    const auto known = stack_numbers.find(number);
    one.stack = known != stack_numbers.end() ? known->second : 0;
    for (uint64_t* value : {&one.allocations, &one.allocated, &one.frees, &one.freed,
                            &one.short_lived, &one.lifetime, &one.shortest, &one.longest}) {
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

void EventLog::State::switch_thread() {
  event_thread = thread_number(
      static_cast<uint32_t>(columns[format::kThreadColumn].number_up_to(kMostNumber)));
  if (event_thread >= addresses.size()) addresses.resize(event_thread + size_t{1});
}

uint64_t EventLog::State::freed() {
  const uint64_t number = first_version ? 0 : column(format::kFreedColumn).number();
  if (number != BlockHistory::kNoBlock)
    return blocks.free(blocks.freed_block(number), event_thread);
  const uint64_t found = address();
  if (!first_version) blocks.free_elsewhere(found, event_thread);
  return found;
}

uint64_t EventLog::State::moved_from() {
  const bool last = !first_version && column(format::kFreedColumn).number_up_to(1) == 1;
  return last ? blocks.last_freed(event_thread) : address();
}

uint64_t EventLog::State::allocated(uint64_t requested) {
  if (first_version) return address();
  const uint64_t number = column(format::kAllocatedColumn).number();
  const uint64_t found = number == BlockHistory::kElsewhere
                             ? address()
                             : blocks.take_address(number, event_thread, requested);
  blocks.allocate(number, found, event_thread, requested);
  return found;
}

// Decodes events until the ring is full.
void EventLog::State::decode_ahead() {
  try {
    for (; left != 0 && decoded_count < kDecodedAhead; --left) {
      Event& event = decoded[(decoded_at + decoded_count) % kDecodedAhead];
      decode(event);
      if (event.kind != Kind::kUnknown) ++decoded_count;
    }
  } catch (const DamagedChunk&) {
    ++damaged;
    left = 0;
  }
}

void EventLog::State::decode(Event& event) {
  event = Event();
  const uint8_t code = column(format::kCodeColumn).byte();
  const uint64_t time = column(format::kTimeColumn).number();
  steps = std::min(steps + (time >> 1), kMostSteps);
  if ((time & 1) != 0) switch_thread();
  event.thread = event_thread;
  last_time = event.time = std::max(last_time, header.started + steps * format::kEventTimeStep);
  ColumnReader& more = column(format::kMoreColumn);
  ColumnReader& sizes = column(format::kSizeColumn);
  if (code >= static_cast<uint8_t>(EventCode::kAllocation)) {
    event.call = std::min<uint8_t>(code & 0xf, format::kEventCalls - 1);
  }
  event.kind = code < std::size(kWithoutCall) ? kWithoutCall[code] : Kind::kUnknown;
  switch (static_cast<EventCode>(code < 0x10 ? code : code & 0xf0)) {
    case EventCode::kAllocation:
      event.kind = Kind::kAllocation;
      read_place(event);
      event.address = allocated(event.requested);
      break;
    case EventCode::kFree:
    case EventCode::kFreeWithStack:
      event.kind = Kind::kFree;
      event.address = freed();
      if (code >= static_cast<uint8_t>(EventCode::kFreeWithStack)) event.stack = stack_number();
      break;
    case EventCode::kUnknownFree:
    case EventCode::kUnknownFreeWithStack:
      event.kind = Kind::kUnknownFree;
      event.address = address();
      if (code >= static_cast<uint8_t>(EventCode::kUnknownFreeWithStack)) {
        event.stack = stack_number();
      }
      break;
    case EventCode::kReallocBegin:
      event.address = freed();
      break;
    case EventCode::kReallocFailed:
      event.address = address();
      break;
    case EventCode::kRealloc:
      event.kind = Kind::kRealloc;
      event.old_address = moved_from();
      read_place(event);
      event.address = allocated(event.requested);
      break;
    case EventCode::kMap:
    case EventCode::kUnmap:
    case EventCode::kUnmapWithStack:
      if (code >= static_cast<uint8_t>(EventCode::kUnmapWithStack)) event.kind = Kind::kUnmap;
      event.address = address();
      event.requested = sizes.number();
      if (code != static_cast<uint8_t>(EventCode::kUnmap)) event.stack = stack_number();
      break;
    case EventCode::kRemap:
      event.old_address = address();
      event.address = address();
      event.old_size = sizes.number();
      event.requested = sizes.number();
      event.stack = stack_number();
      break;
    case EventCode::kNote:
      event.text = more.text();
      break;
    case EventCode::kReport:
      event.number = more.number();
      event.text = more.text();
      break;
    case EventCode::kMemory:
    case EventCode::kLost:
    case EventCode::kFork:
    case EventCode::kEnd:
      event.number = more.number();
      break;
    default:  // has no values
      break;
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

const std::string& EventLog::missing_inheritance() const { return state_->problem; }

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
  return state_->threads[number < state_->threads.size() ? number : 0];
}
uint32_t EventLog::thread_count() const {
  return static_cast<uint32_t>(state_->threads.size() - 1);
}
uint64_t EventLog::damaged_chunks() const { return state_->damaged + state_->file.damaged(); }
std::string EventLog::missing() const { return missing_text(damaged_chunks(), state_->file); }
bool EventLog::cut_short() const { return state_->file.cut_short(); }

}  // namespace mtrace::events
