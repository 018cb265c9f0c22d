#include "model/profile/reader.h"

#include "format/event_log.h"
#include "format/memlog.h"
#include "model/profile/line.h"
#include "model/profile/model.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

constexpr size_t kSample = 1000;  // entries that tell how many there are
constexpr size_t kPiece = 4096;
// The file ends before "# end".
struct EarlyEnd : LineError {};

constexpr size_t kStackText = 65536;  // bytes; a known stack of more is read each time

class Reader {
 public:
  Reader(const std::string& name, util::Window& window, KnownStacks* known)
      : window_(window), known_(known) {
    memlog_.name = name;
  }

  // The entries go there, kPiece at a time.
  void hand_over(const Piece& action) { action_ = &action; }
  // Entries are given their tails before the lines of these are read again.
  void expect(Tails tails) { tails_ = std::move(tails); }
  Tails take_tails() { return std::move(tails_); }
  // A file may end early.
  void allow_early_end(std::optional<CutShort>& cut) { cut_ = &cut; }
  size_t modules() const { return modules_.size(); }

  Memlog run() {
    try {
      first_line();
      while (next_line()) {
        if (line_ == format::kEndLine) return finish();
        one_line();
      }
      throw EarlyEnd{{"the file ends without \"# end\""}};
    } catch (const util::DamagedCompression& damage) {
      if (may_end_early()) return finish_early(damage.what);
      throw util::damage_in(memlog_.name, number_, damage);
    } catch (const EarlyEnd& error) {
      if (may_end_early()) return finish_early(error.what);
      const std::string help =
          missing_key(seen_) == nullptr
              ? "; what comes before: memlog show --partial " + util::shell_word(memlog_.name)
              : "";
      throw util::FormatError(memlog_.name, number_ == 0 ? 1 : number_, error.what + help);
    } catch (const LineError& error) {
      throw util::FormatError(memlog_.name, number_ == 0 ? 1 : number_, error.what);
    }
  }

 private:
  bool may_end_early() const { return cut_ != nullptr && missing_key(seen_) == nullptr; }

  // False at the end of the file, where the line number stays at the last line.
  bool next_line() {
    line_ = window_.from(at_);
    size_t end = line_.find('\n');
    while (end == std::string_view::npos) {
      const size_t searched = line_.size();
      const bool more = window_.more(in_entry_ && known_ != nullptr ? frames_at_ : at_);
      line_ = window_.from(at_);
      if (!more) break;
      end = line_.find('\n', searched);
    }
    if (line_.empty()) return false;
    ++number_;
    if (end == std::string_view::npos) {
      constexpr char kIncomplete[] = "the last line is not complete";
      if (cut_ != nullptr) throw EarlyEnd{{kIncomplete}};
      check_bytes(line_, true);
      throw EarlyEnd{{kIncomplete}};
    }
    line_ = line_.substr(0, end);
    at_ += end + 1;
    return true;
  }

  void first_line() {
    constexpr std::string_view kMagic = format::kMagicLine;
    constexpr std::string_view kAnyVersion = kMagic.substr(0, kMagic.rfind(' ') + 1);
    while (window_.from(0).size() < kMagic.size() && window_.more(0)) {
    }
    if (window_.from(0).empty()) throw LineError{"not a memlog: the file is empty"};
    if (window_.from(0).starts_with(format::kEventHeaderMark)) {
      throw LineError{
          "not a memlog, but an event log: give it with --events, or make a memlog of it: memlog "
          "report --from " +
          util::shell_word(memlog_.name)};
    }
    if (window_.from(0).starts_with("\x7f"
                                    "ELF") ||
        window_.from(0).starts_with("#!")) {
      throw LineError{"not a memlog, but a program: memlog run makes one of it"};
    }
    if (!window_.from(0).starts_with(kAnyVersion)) {
      throw LineError{fmt::format("not a memlog: it does not begin with \"{}\"", kMagic)};
    }
    next_line();
    if (!is_first_line(line_)) {
      throw LineError{fmt::format("version {} of the format; this program reads versions 1 and 2",
                                  message_quoted(line_.substr(kAnyVersion.size())))};
    }
  }

  void one_line() {
    if (line_.empty()) throw LineError{"an empty line"};
    check_bytes(line_, line_[0] != '#');
    switch (line_[0]) {
      case '#':
        close_entry();
        meta_line();
        break;
      case '\t':
        frame_line();
        break;
      case '+':
      case '-':
      case '@':
        close_entry();
        entry_line();
        break;
      default:
        throw LineError{"neither a \"# key: value\" line, an entry nor a frame"};
    }
  }

  void meta_line() {
    Field line = read_meta(line_);
    if (line.key == format::kKeyTail) return tail_line(line);
    const Section section = section_of(line.key);
    if (section == Section::kBefore && (after_ || checks_.entries() != 0)) {
      throw LineError{fmt::format("\"# {}:\" belongs before the entries", line.key)};
    }
    after_ |= section == Section::kAfter || checks_.entries() != 0;
    read_header_line(line, memlog_.header, modules_, seen_);
    if (line.key == format::kKeyDelta) delta_line_ = number_;
    if (line.key == format::kKeyFreed) freed_line_ = number_;
    (after_ ? memlog_.after : memlog_.before).push_back(std::move(line));
  }

  // "# tail: ID", and frames follow.
  void tail_line(const Field& line) {
    if (after_ || checks_.entries() == 0) {
      throw LineError{"a tail that does not come directly behind the entries"};
    }
    tails_begun_ = true;
    tail_ = tail(line.value);
    if (!defined_.insert(tail_->tail()).second) throw LineError{"a tail that was there before"};
    in_entry_ = true;
    depth_ = 0;
    rest_ = nullptr;
  }

  std::shared_ptr<Frames> tail(std::string_view id) {
    const auto number = util::read_stack_id(id);
    if (!number) throw LineError{"a tail without 16 hex digits"};
    std::shared_ptr<Frames>& tail = tails_[*number];
    if (tail == nullptr) {
      tail = std::make_shared<Frames>();
      tail->set_tail(*number);
    }
    return tail;
  }

  // Throws if a tail is missing, leads to itself or is too deep.
  void check_tails() const {
    for (const auto& [id, tail] : tails_) {
      int depth = 0;
      for (const Frames* part = tail.get(); part != nullptr; part = part->rest().get()) {
        if (!defined_.contains(part->tail())) {
          throw LineError{fmt::format("no tail {:016x}, which a stack ends with", part->tail())};
        }
        if (part->own().empty()) throw LineError{fmt::format("tail {:016x} has no frame", id)};
        for (const Frame& frame : part->own()) depth += frame.place == Place::kInlined ? 0 : 1;
        if (depth >= format::kMaxDepth) {
          throw LineError{fmt::format("a stack of more than {} frames", format::kMaxDepth)};
        }
      }
    }
  }

  void entry_line() {
    if (tails_begun_) throw LineError{"an entry after the tails"};
    if (after_) throw LineError{"an entry after the lines that end the entries"};
    if (checks_.entries() == 0) {
      check_required();
      if (known_ != nullptr && !modules_.empty()) known_ = nullptr;
      if (known_ != nullptr) known_->begin(memlog_.header, modules_);
    }
    Entry entry = read_entry(line_);
    checks_.add(entry, memlog_.header);
    std::vector<Entry>& entries = memlog_.entries;
    if (action_ != nullptr && entries.size() == kPiece) {
      (*action_)(memlog_);
      entries.clear();
    }
    if (action_ == nullptr && entries.size() >= kSample && entries.size() == entries.capacity()) {
      // So many entries took so much text; a twentieth more than that will mostly do.
      entries.reserve(window_.size() * entries.size() / at_ / 20 * 21 + 1);
    }
    entries.push_back(std::move(entry));
    if (take_known_stack()) return;
    in_entry_ = true;
    tail_ = nullptr;
    rest_ = nullptr;
    depth_ = 0;
    frames_at_ = at_;
  }

  // Moves on behind the frames if they are those that the stack always had.
  bool take_known_stack() {
    Entry& entry = memlog_.entries.back();
    if (known_ == nullptr || entry.stack == 0) return false;
    while (window_.from(at_).size() < kStackText && window_.more(at_)) {
    }
    const KnownStacks::Stack* stack = known_->find(entry.stack, window_.from(at_));
    if (stack == nullptr) return false;
    entry.frames = stack->frames;
    entry.cut = stack->cut;
    at_ += stack->text.size();
    number_ += stack->lines;
    return true;
  }

  void frame_line() {
    if (!in_entry_) throw LineError{"a frame without an entry"};
    const std::string_view line = line_.substr(1);
    if (rest_ != nullptr) throw LineError{"a frame after a tail"};
    if (line.starts_with(format::kTailMark)) {
      check_inlined();
      if (frames_.empty()) throw LineError{"a tail without a frame before it"};
      rest_ = tail(line.substr(std::string_view(format::kTailMark).size()));
      return;
    }
    if (tail_ == nullptr) {
      Entry& entry = memlog_.entries.back();
      if (entry.cut) throw LineError{"a frame after \"...\""};
      if (line == format::kCutLine) {
        check_inlined();
        entry.cut = true;
        return;
      }
    }
    frames_.push_back(read_frame(line, modules_));
    if (frames_.back().place != Place::kInlined && ++depth_ > format::kMaxDepth) {
      throw LineError{fmt::format("a stack of more than {} frames", format::kMaxDepth)};
    }
  }

  void check_inlined() const {
    if (!frames_.empty() && frames_.back().place == Place::kInlined) {
      throw LineError{"the inlined frame before this line is not followed by what it is part of"};
    }
  }

  // With no room for more than there are.
  Frames take_frames() {
    Frames::List list(std::make_move_iterator(frames_.begin()),
                      std::make_move_iterator(frames_.end()));
    frames_.clear();
    return {std::move(list), std::move(rest_)};
  }

  // At the line behind its last one.
  void close_entry() {
    if (!in_entry_) return;
    check_inlined();
    in_entry_ = false;
    if (tail_ != nullptr) {
      const uint64_t id = tail_->tail();
      *tail_ = take_frames();
      tail_->set_tail(id);
      return;
    }
    Entry& entry = memlog_.entries.back();
    entry.frames = take_frames();
    if (known_ != nullptr && entry.stack != 0) {
      const size_t end = at_ - line_.size() - 1;
      const std::string_view text = window_.from(frames_at_).substr(0, end - frames_at_);
      known_->add(entry.stack, text, entry.frames, entry.cut);
    }
  }

  void check_required() {
    if (const char* key = missing_key(seen_)) {
      throw LineError{fmt::format("no \"# {}:\" before this line", key)};
    }
  }

  Memlog finish_early(const std::string& why) {
    CutShort cut;
    cut.line = number_;
    cut.why = why;
    if (in_entry_ && tail_ == nullptr) memlog_.entries.pop_back();
    for (const auto& [id, tail] : tails_) {
      if (!defined_.contains(id) || (in_entry_ && tail_ != nullptr && tail == tail_)) {
        tail->edit().clear();
        missing_.insert(tail.get());
      }
    }
    for (Entry& entry : memlog_.entries) {
      for (const Frames* part = &entry.frames; part != nullptr; part = part->rest().get()) {
        entry.cut |= missing_.contains(part);
      }
    }
    for (const Entry& entry : memlog_.entries) {
      if (!entry.heap()) continue;
      ++cut.stacks;
      // Each sum up to an entry has been checked.
      cut.sum.bytes += entry.bytes;
      cut.sum.blocks += entry.blocks;
    }
    *cut_ = cut;
    checks_.conclude(memlog_.header);
    memlog_.modules = modules_.take();
    return std::move(memlog_);
  }

  Memlog finish() {
    close_entry();
    check_required();
    check_tails();
    if (!window_.from(at_).empty() || window_.more(at_)) {
      ++number_;
      throw LineError{"something follows \"# end\""};
    }
    number_ = delta_line_;
    checks_.check_delta(memlog_.header);
    number_ = freed_line_;
    checks_.check_live(memlog_.header);
    checks_.conclude(memlog_.header);
    if (action_ != nullptr) {
      (*action_)(memlog_);
      memlog_.entries.clear();
    }
    memlog_.modules = modules_.take();
    if (known_ != nullptr && checks_.entries() != 0) known_->end(memlog_.modules);
    return std::move(memlog_);
  }

  util::Window& window_;
  KnownStacks* known_;
  const Piece* action_ = nullptr;
  std::optional<CutShort>* cut_ = nullptr;  // a file may end early
  size_t at_ = 0;
  size_t number_ = 0;  // of the line, from 1
  std::string_view line_;
  size_t delta_line_ = 0;
  size_t freed_line_ = 0;
  bool after_ = false;  // the entries are over
  bool in_entry_ = false;
  int depth_ = 0;
  Frames::List frames_;           // of the entry or the tail
  Frames::Rest rest_;             // that it ends with; so far nullptr: none
  std::shared_ptr<Frames> tail_;  // whose frames come; nullptr: an entry's
  bool tails_begun_ = false;
  Tails tails_;
  absl::flat_hash_set<uint64_t> defined_;       // tails whose lines have come
  absl::flat_hash_set<const Frames*> missing_;  // tails that a file which ends early lacks
  size_t frames_at_ = 0;
  EntryChecks checks_;
  std::vector<std::string> seen_;
  ModuleTable modules_;
  Memlog memlog_;
};

}  // namespace

Memlog read(const std::string& name, std::string_view text, KnownStacks* known) {
  util::Window window(text);
  return Reader(name, window, known).run();
}

Memlog read_path(const std::string& path, KnownStacks* known) {
  util::Window window(path);
  return Reader(path == "-" ? "<stdin>" : window.path(), window, known).run();
}

Memlog read_partly(const std::string& path, std::optional<CutShort>& cut) {
  util::Window window(path);
  Reader reader(path == "-" ? "<stdin>" : window.path(), window, nullptr);
  reader.allow_early_end(cut);
  return reader.run();
}

Pieces::Pieces(const std::string& path) : window_(path) {
  Reader reader(window_.path(), window_, nullptr);
  const Piece none = [](Memlog&) {};
  reader.hand_over(none);
  head_ = reader.run();
  tails_ = reader.take_tails();
}

void Pieces::each(const Piece& action) {
  window_.rewind();
  Reader reader(window_.path(), window_, nullptr);
  reader.expect(tails_);
  Memlog piece = head_;
  const Piece take = [&](Memlog& read) {
    // Frames name modules by their place in the list.
    if (reader.modules() > head_.modules.size()) {
      throw util::FileError("cannot read " + window_.path() + " twice", ESTALE);
    }
    piece.entries = std::move(read.entries);
    action(piece);
  };
  reader.hand_over(take);
  reader.run();
}

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

namespace {

// Where an entry tells what it did, that must come to what it left behind.
void check_activity(const Entry& entry) {
  const Activity& did = entry.activity;
  if (did.allocations == 0 && did.allocated_bytes == 0 && did.frees == 0 && did.freed_bytes == 0) {
    return;
  }
  if (did.allocations - did.frees != static_cast<uint64_t>(entry.blocks) ||
      did.allocated_bytes - did.freed_bytes != static_cast<uint64_t>(entry.bytes)) {
    throw LineError{"allocs=, frees= and their bytes do not come to the entry's blocks and bytes"};
  }
}

void check_lifetime(const Entry& entry) {
  const Lifetime& life = entry.activity.lifetime;
  if (life == Lifetime{}) return;
  if (entry.activity.frees == 0) throw LineError{"a lifetime without frees="};
  if (life.least > life.mean || life.mean > life.most) {
    throw LineError{"lifetime-min=, lifetime-mean= and lifetime-max= are not in this order"};
  }
}

}  // namespace

void EntryChecks::add(Entry& entry, const Header& header) {
  check_activity(entry);
  check_lifetime(entry);
  check_peak(entry, header);
  check_order(entry);
  check_sum(entry);
  ++entries_;
  if (header.sampled && entry.heap()) variance_ += set_errors(entry, *header.sampled);
}

void EntryChecks::check_delta(const Header& header) const {
  if (sum_ == header.delta) return;
  throw LineError{
      fmt::format("delta: the entries sum up to {:+} bytes {:+} blocks", sum_.bytes, sum_.blocks)};
}

void EntryChecks::check_live(const Header& header) const {
  if (header.allocated && header.freed &&
      (header.allocated->bytes - header.freed->bytes != header.live.bytes ||
       header.allocated->blocks - header.freed->blocks != header.live.blocks)) {
    throw LineError{"allocated: less freed: is not live:"};
  }
}

void EntryChecks::conclude(Header& header) const {
  name_regions(header);
  if (!header.sampled) return;
  header.delta_error = standard_error(variance_);
  header.live_error =
      standard_error(variance_of(static_cast<uint64_t>(header.live.bytes),
                                 static_cast<uint64_t>(header.live.blocks), *header.sampled));
}

// The shares add up to the peak at most, give or take what the file says that they are off by.
void EntryChecks::check_peak(const Entry& entry, const Header& header) {
  if (!entry.heap() || !header.peak || entry.peak == 0) return;
  // Both numbers fit 63 bits.
  const uint64_t most = header.peak->bytes + header.peak_error.value_or(0);
  if (entry.peak > most) throw LineError{"peak= is more than the peak of the process"};
  if (__builtin_add_overflow(shares_, entry.peak, &shares_) || shares_ > most) {
    throw LineError{"the entries' peak= add up to more than the peak of the process"};
  }
}

void EntryChecks::check_order(const Entry& entry) {
  if (entries_ != 0 && last_kind_ == entry.kind && last_bytes_ < entry.bytes) {
    throw LineError{"the entry is larger than the one before it"};
  }
  last_kind_ = entry.kind;
  last_bytes_ = entry.bytes;
}

void EntryChecks::check_sum(const Entry& entry) {
  if (!entry.heap()) return;
  if (__builtin_add_overflow(sum_.bytes, entry.bytes, &sum_.bytes) ||
      __builtin_add_overflow(sum_.blocks, entry.blocks, &sum_.blocks)) {
    throw LineError{"the sum of the entries does not fit 64 bits"};
  }
}

namespace {

// What the memory is of which the library says `name`.
std::string_view meaning_of(std::string_view name, bool java) {
  if (!name.starts_with(format::kRegionAnonymous)) return name;
  const std::vector<std::string_view> words = util::split(name, ' ');
  const auto has = [&](std::string_view word) {
    return std::find(words.begin() + 2, words.end(), word) != words.end();
  };
  if (words[1].find('x') != words[1].npos) return "code made at run time";
  // HotSpot puts a heap that compressed references reach into the lowest 32 GiB.
  if (java && has(format::kRegionLow)) return "Java heap";
  if (has(format::kRegionSupplied)) return "supplied by the program (userfaultfd)";
  if (has(format::kRegionChunk)) return "V8 heap";
  if (has(format::kRegionStack)) return "stacks of threads";
  return kUnnamedRegion;
}

void add_note(Header& header) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const auto is_that = [](const std::string& note) { return note.starts_with(format::kResident); };
  if (std::any_of(header.notes.begin(), header.notes.end(), is_that)) return;
  const uint64_t resident = header.rss.value_or(0);
  std::string named;
  for (const RegionUse& region : header.regions) {
    if (!format::is_much(region.resident, resident) || region.name == format::kRegionMalloc) {
      continue;
    }
    named +=
        fmt::format("{}{} {} MiB", named.empty() ? "" : ", ", region.name, region.resident / kMiB);
  }
  if (named.empty()) return;
  header.notes.push_back(
      fmt::format("{}{} (of {} MiB)", format::kResident, named, resident / kMiB));
}

}  // namespace

void name_regions(Header& header) {
  const bool java = std::any_of(header.regions.begin(), header.regions.end(), [](const auto& one) {
    return one.name.find("/libjvm.so") != std::string::npos;
  });
  std::vector<RegionUse> named;
  for (const RegionUse& region : header.regions) {
    const std::string_view name = meaning_of(region.name, java);
    const auto same = std::find_if(named.begin(), named.end(),
                                   [&](const RegionUse& one) { return one.name == name; });
    if (same == named.end()) {
      named.push_back({std::string(name), region.resident, region.size});
    } else {
      same->resident += region.resident;
      same->size += region.size;
    }
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const RegionUse& a, const RegionUse& b) { return a.resident > b.resident; });
  header.regions = std::move(named);
  add_note(header);
}

namespace {

// What a block can add most is added at so many means: the root of 2 (1 - exp(-x)) = x.
constexpr double kMostAt = 1.5936;

}  // namespace

uint64_t standard_error(double variance) {
  constexpr double kMost = 9e18;
  return static_cast<uint64_t>(std::min(std::round(std::sqrt(variance)), kMost));
}

double variance_of(uint64_t bytes, uint64_t blocks, uint64_t mean) {
  const auto sum = static_cast<double>(bytes);
  const auto distance = static_cast<double>(mean);
  if (blocks == 0) return sum * distance;
  const auto count = static_cast<double>(blocks);
  const double size = std::min(sum / count, kMostAt * distance);
  return count * size * size / std::expm1((size + 1) / distance);
}

double set_errors(Entry& entry, uint64_t mean) {
  const Activity& did = entry.activity;
  const auto change = static_cast<uint64_t>(entry.bytes);  // modulo 2^64
  // The most that can have been allocated since and still be there, ...
  const uint64_t made = std::max(std::min(did.allocated_bytes, entry.live),
                                 static_cast<uint64_t>(std::max<int64_t>(entry.bytes, 0)));
  const uint64_t gone = made - change;  // ... and then was there before and is not any more
  const bool is_new = change == entry.live && entry.blocks > 0;
  const uint64_t blocks = is_new ? static_cast<uint64_t>(entry.blocks) : 0;
  entry.live_error = standard_error(variance_of(entry.live, blocks, mean));
  const double variance =
      variance_of(made, made == did.allocated_bytes ? did.allocations : blocks, mean) +
      variance_of(gone, gone == did.freed_bytes ? did.frees : 0, mean);
  entry.error = standard_error(variance);
  return variance;
}

}  // namespace mtrace::profile
