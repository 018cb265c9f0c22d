#include "profile/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/memlog.h"
#include "profile/error.h"
#include "profile/file.h"
#include "profile/header.h"
#include "profile/known_stacks.h"
#include "profile/line.h"
#include "profile/module_table.h"

namespace mtrace::profile {
namespace {

constexpr size_t kSample = 1000;  // entries that tell how many there are

class Reader {
 public:
  Reader(const std::string& name, std::string_view text, KnownStacks* known)
      : text_(text), known_(known) {
    memlog_.name = name;
  }

  Memlog run() {
    try {
      first_line();
      while (next_line()) {
        if (line_ == format::kEndLine) return finish();
        one_line();
      }
      throw LineError{"the file ends without \"# end\""};
    } catch (const LineError& error) {
      throw FormatError(memlog_.name, number_ == 0 ? 1 : number_, error.what);
    }
  }

 private:
  // False at the end of the file, where the line number stays at the last line.
  bool next_line() {
    if (at_ == text_.size()) return false;
    ++number_;
    const size_t end = text_.find('\n', at_);
    line_ = text_.substr(at_, end - at_);
    if (end == std::string_view::npos) {
      check_bytes(line_, true);
      throw LineError{"the last line is not complete"};
    }
    at_ = end + 1;
    return true;
  }

  void first_line() {
    constexpr std::string_view kMagic = format::kMagicLine;
    constexpr std::string_view kAnyVersion = kMagic.substr(0, kMagic.rfind(' ') + 1);
    if (text_.empty()) throw LineError{"not a memlog: the file is empty"};
    if (!text_.starts_with(kAnyVersion)) {
      throw LineError{fmt::format("not a memlog: it does not begin with \"{}\"", kMagic)};
    }
    next_line();
    if (line_ != kMagic) {
      throw LineError{fmt::format("version {} of the format; this program reads version 1",
                                  quoted(line_.substr(kAnyVersion.size())))};
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
    const Section section = section_of(line.key);
    if (section == Section::kBefore && (after_ || !memlog_.entries.empty())) {
      throw LineError{fmt::format("\"# {}:\" belongs before the entries", line.key)};
    }
    after_ |= section == Section::kAfter || !memlog_.entries.empty();
    read_header_line(line, memlog_.header, modules_, seen_);
    if (line.key == format::kKeyDelta) delta_line_ = number_;
    if (line.key == format::kKeyFreed) freed_line_ = number_;
    (after_ ? memlog_.after : memlog_.before).push_back(std::move(line));
  }

  void entry_line() {
    if (after_) throw LineError{"an entry after the lines that end the entries"};
    if (memlog_.entries.empty()) {
      check_required();
      if (known_ != nullptr && !modules_.empty()) known_ = nullptr;
      if (known_ != nullptr) known_->begin(memlog_.header, modules_);
    }
    Entry entry = read_entry(line_);
    check_activity(entry);
    check_lifetime(entry);
    check_peak(entry);
    if (!memlog_.entries.empty() && memlog_.entries.back().kind == entry.kind &&
        memlog_.entries.back().bytes < entry.bytes) {
      throw LineError{"the entry is larger than the one before it"};
    }
    if (entry.heap()) {
      if (__builtin_add_overflow(sum_.bytes, entry.bytes, &sum_.bytes) ||
          __builtin_add_overflow(sum_.blocks, entry.blocks, &sum_.blocks)) {
        throw LineError{"the sum of the entries does not fit 64 bits"};
      }
    }
    std::vector<Entry>& entries = memlog_.entries;
    if (entries.size() >= kSample && entries.size() == entries.capacity()) {
      // So many entries took so much text; a twentieth more than that will mostly do.
      entries.reserve(text_.size() * entries.size() / at_ / 20 * 21 + 1);
    }
    memlog_.entries.push_back(std::move(entry));
    if (take_known_stack()) return;
    in_entry_ = true;
    depth_ = 0;
    frames_at_ = at_;
    frames_.reserve(deepest_);
  }

  // Moves on behind the frames if they are those that the stack always had.
  bool take_known_stack() {
    Entry& entry = memlog_.entries.back();
    if (known_ == nullptr || entry.stack == 0) return false;
    const KnownStacks::Stack* stack = known_->find(entry.stack, text_.substr(at_));
    if (stack == nullptr) return false;
    entry.frames = stack->frames;
    entry.cut = stack->cut;
    at_ += stack->text.size();
    number_ += stack->lines;
    return true;
  }

  // Where an entry tells what it did, that must come to what it left behind.
  static void check_activity(const Entry& entry) {
    const Activity& did = entry.activity;
    if (did.allocations == 0 && did.allocated_bytes == 0 && did.frees == 0 &&
        did.freed_bytes == 0) {
      return;
    }
    if (did.allocations - did.frees != static_cast<uint64_t>(entry.blocks) ||
        did.allocated_bytes - did.freed_bytes != static_cast<uint64_t>(entry.bytes)) {
      throw LineError{
          "allocs=, frees= and their bytes do not come to the entry's blocks and bytes"};
    }
  }

  static void check_lifetime(const Entry& entry) {
    const Lifetime& life = entry.activity.lifetime;
    if (life == Lifetime{}) return;
    if (entry.activity.frees == 0) throw LineError{"a lifetime without frees="};
    if (life.least > life.mean || life.mean > life.most) {
      throw LineError{"lifetime-min=, lifetime-mean= and lifetime-max= are not in this order"};
    }
  }

  // The shares add up to the peak at most, give or take what the file says that they are off by.
  void check_peak(const Entry& entry) {
    const Header& header = memlog_.header;
    if (!entry.heap() || !header.peak || entry.peak == 0) return;
    // Both numbers fit 63 bits.
    const uint64_t most = header.peak->bytes + header.peak_error.value_or(0);
    if (entry.peak > most) throw LineError{"peak= is more than the peak of the process"};
    if (__builtin_add_overflow(shares_, entry.peak, &shares_) || shares_ > most) {
      throw LineError{"the entries' peak= add up to more than the peak of the process"};
    }
  }

  void frame_line() {
    if (!in_entry_) throw LineError{"a frame without an entry"};
    Entry& entry = memlog_.entries.back();
    if (entry.cut) throw LineError{"a frame after \"...\""};
    const std::string_view line = line_.substr(1);
    if (line == format::kCutLine) {
      check_inlined();
      entry.cut = true;
      return;
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

  // At the line behind its last one.
  void close_entry() {
    if (!in_entry_) return;
    check_inlined();
    in_entry_ = false;
    Entry& entry = memlog_.entries.back();
    deepest_ = std::max(deepest_, frames_.size());
    entry.frames = std::move(frames_);
    frames_.clear();
    if (known_ != nullptr && entry.stack != 0) {
      const size_t end = at_ - line_.size() - 1;
      known_->add(entry.stack, text_.substr(frames_at_, end - frames_at_), entry.frames, entry.cut);
    }
  }

  void check_required() {
    if (const char* key = missing_key(seen_)) {
      throw LineError{fmt::format("no \"# {}:\" before this line", key)};
    }
  }

  Memlog finish() {
    close_entry();
    check_required();
    if (at_ != text_.size()) {
      ++number_;
      throw LineError{"something follows \"# end\""};
    }
    if (!(sum_ == memlog_.header.delta)) {
      number_ = delta_line_;
      throw LineError{fmt::format("delta: the entries sum up to {:+} bytes {:+} blocks", sum_.bytes,
                                  sum_.blocks)};
    }
    const Header& header = memlog_.header;
    if (header.allocated && header.freed &&
        (header.allocated->bytes - header.freed->bytes != header.live.bytes ||
         header.allocated->blocks - header.freed->blocks != header.live.blocks)) {
      number_ = freed_line_;
      throw LineError{"allocated: less freed: is not live:"};
    }
    memlog_.modules = modules_.take();
    if (known_ != nullptr && !memlog_.entries.empty()) known_->end(memlog_.modules);
    return std::move(memlog_);
  }

  std::string_view text_;
  KnownStacks* known_;
  size_t at_ = 0;
  size_t number_ = 0;  // of the line, from 1
  std::string_view line_;
  size_t delta_line_ = 0;
  size_t freed_line_ = 0;
  bool after_ = false;  // the entries are over
  bool in_entry_ = false;
  int depth_ = 0;
  Frames::List frames_;  // of the entry
  size_t frames_at_ = 0;
  size_t deepest_ = 0;
  Total sum_;
  uint64_t shares_ = 0;  // in the process's peak
  std::vector<std::string> seen_;
  ModuleTable modules_;
  Memlog memlog_;
};

}  // namespace

Memlog read(const std::string& name, std::string_view text, KnownStacks* known) {
  return Reader(name, text, known).run();
}

Memlog read_path(const std::string& path, KnownStacks* known) {
  return read(path == "-" ? "<stdin>" : path, read_file(path), known);
}

}  // namespace mtrace::profile
