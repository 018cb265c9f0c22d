#include "memlog_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace mtrace::test {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
         (text == "0" || text[0] != '0');
}

bool is_hex(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// +N, -N, +0; never -0, never leading zeros.
bool parse_signed(const std::string& text, int64_t* value) {
  if (text.size() < 2 || (text[0] != '+' && text[0] != '-') || !is_digits(text.substr(1))) {
    return false;
  }
  if (text == "-0") return false;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto result = std::from_chars(begin, text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// N, at most 2^63 - 1.
bool parse_count(const std::string& text, int64_t* value) {
  if (!is_digits(text)) return false;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc();
}

bool parse_amount(const std::string& text, bool with_sign, Amount* amount) {
  const std::vector<std::string> words = split(text, ' ');
  if (words.size() != 4 || words[1] != "bytes" || words[3] != "blocks") return false;
  if (with_sign) {
    return parse_signed(words[0], &amount->bytes) && parse_signed(words[2], &amount->blocks);
  }
  return parse_count(words[0], &amount->bytes) && parse_count(words[2], &amount->blocks);
}

bool is_key(const std::string& key) {
  if (key.empty() || key[0] < 'a' || key[0] > 'z') return false;
  return key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

bool is_number_field(const std::string& key) {
  static const std::set<std::string> kFields = {
      "allocs",       "allocated",     "frees",        "freed", "temporary", "short-lived",
      "lifetime-min", "lifetime-mean", "lifetime-max", "age",   "slack",     "peak"};
  return kFields.contains(key);
}

// YYYY-MM-DDTHH:MM:SS.ffffffZ
bool is_time(const std::string& time) {
  static const std::string kShape = "dddd-dd-ddTdd:dd:dd.ddddddZ";
  if (time.size() != kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == 'd' ? time[i] < '0' || time[i] > '9' : time[i] != kShape[i]) return false;
  }
  return true;
}

// "N bytes"
bool parse_bytes(const std::string& text, int64_t* bytes) {
  const std::vector<std::string> words = split(text, ' ');
  return words.size() == 2 && words[1] == "bytes" && parse_count(words[0], bytes);
}

// NAME=N and so on; names have neither a space nor "=" and stand once.
bool parse_list(const std::string& text, std::map<std::string, int64_t>* list) {
  for (const std::string& word : split(text, ' ')) {
    const size_t equals = word.find('=');
    int64_t number = 0;
    if (equals == std::string::npos || equals == 0 ||
        !parse_count(word.substr(equals + 1), &number) ||
        !list->emplace(word.substr(0, equals), number).second) {
      return false;
    }
  }
  return true;
}

class Parser {
 public:
  Parser(const std::string& text, const std::string& path) : text_(text) { log_.path = path; }

  Memlog parse() {
    if (text_.empty() || text_.back() != '\n') fail("does not end with a newline");
    while (position_ < text_.size()) {
      const size_t end = text_.find('\n', position_);
      const std::string line = text_.substr(position_, end - position_);
      position_ = end + 1;
      ++line_;
      check_bytes(line);
      if (ended_) fail("text after # end");
      if (line_ == 1) {
        if (line != "# memlog 1" && line != "# memlog 2") fail("not a memlog");
      } else if (line == "# end") {
        ended_ = true;
      } else if (line.starts_with("# ")) {
        meta(line.substr(2));
      } else if (line.starts_with("\t")) {
        frame(line.substr(1));
      } else {
        entry(line);
      }
    }
    if (!ended_) fail("no # end");
    add_tails();
    return std::move(log_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw MemlogError(log_.path + ":" + std::to_string(line_) + ": " + what);
  }

  void check_bytes(const std::string& line) const {
    for (const unsigned char byte : line) {
      if ((byte < 0x20 && byte != '\t') || byte == 0x7f) fail("control byte in line");
    }
  }

  void meta(const std::string& text) {
    const size_t colon = text.find(": ");
    if (colon == std::string::npos) fail("meta line without ': '");
    const std::string key = text.substr(0, colon);
    if (!is_key(key)) fail("bad key " + key);
    if (after_entries_ == 0 && !log_.entries.empty()) {
      after_entries_ = 1;
    }
    if (key == "tail") return tail(text.substr(colon + 2));
    after_tails_ = !tails_.empty();
    in_tail_ = nullptr;
    log_.meta.emplace_back(key, text.substr(colon + 2));
    if (log_.entries.empty()) log_.meta_before_entries = log_.meta.size();
    in_entry_ = false;
  }

  void tail(const std::string& id) {
    if (after_tails_) fail("a tail among the closing meta lines");
    if (id.size() != 16 || !is_hex(id)) fail("bad tail " + id);
    if (!tails_.emplace(id, Tail{}).second) fail("a tail twice");
    if (!ended_with_.contains(id)) fail("a tail that nothing ends with");
    in_tail_ = &tails_[id];
  }

  // "^ tail=ID"
  void end_with_tail(const std::string& id) {
    if (in_tail_ == nullptr) {
      const auto& frames = log_.entries.back().frames;
      if (std::count_if(frames.begin(), frames.end(), [](const auto& f) { return !f.inlined; }) <
          10)
        fail("a tail before ten frames");
      if (log_.entries.back().cut) fail("a tail after ...");
    }
    std::string& end = in_tail_ == nullptr ? ends_[log_.entries.size() - 1] : in_tail_->end;
    if (!end.empty()) fail("two tails");
    end = id;
    ended_with_.insert(id);
  }

  void add_tails() {
    for (const auto& [number, first] : ends_) {
      std::vector<Frame>& frames = log_.entries[number].frames;
      for (std::string id = first; !id.empty(); id = tails_[id].end) {
        if (!tails_.contains(id)) fail("no tail " + id);
        if (frames.size() > 2000) fail("tails that lead to each other");
        frames.insert(frames.end(), tails_[id].frames.begin(), tails_[id].frames.end());
      }
    }
  }

  void entry(const std::string& line) {
    in_tail_ = nullptr;
    if (!tails_.empty()) fail("an entry after the tails");
    if (after_entries_ != 0) fail("entry after the closing meta lines");
    std::vector<std::string> fields = split(line, '\t');
    Entry entry;
    entry.line = line_;
    size_t next = 0;
    if (fields[0].starts_with("@")) {
      entry.kind = fields[0].substr(1);
      next = 1;
    }
    if (next >= fields.size() || !parse_signed(fields[next], &entry.bytes)) fail("bad bytes");
    std::set<std::string> seen;
    for (++next; next < fields.size(); ++next) {
      const size_t equals = fields[next].find('=');
      if (equals == std::string::npos) fail("field without =");
      const std::string key = fields[next].substr(0, equals);
      const std::string value = fields[next].substr(equals + 1);
      if (!is_key(key)) fail("bad field name " + key);
      if (!seen.insert(key).second) fail("field twice: " + key);
      if (key == "blocks") {
        if (!parse_signed(value, &entry.blocks)) fail("bad blocks=" + value);
      } else if (key == "live") {
        if (!parse_count(value, &entry.live)) fail("bad live=" + value);
      } else if (key == "stack") {
        if (value.size() != 16 || !is_hex(value)) fail("bad stack=" + value);
        entry.stack = value;
      } else if (key == "call") {
        if (value.empty()) fail("bad call=" + value);
        entry.call = value;
      } else if (key == "prot") {
        if (value.size() != 3 || !entry.mapped.empty()) fail("bad prot=" + value);
        entry.mapped = value;
      } else if (key == "flags") {
        if (entry.mapped.size() != 3 || value.empty()) fail("bad flags=" + value);
        entry.mapped += ' ' + value;
      } else if (key == "before") {
        if (value.size() != 16 || !is_hex(value)) fail("bad before=" + value);
        entry.before = value;
      } else if (int64_t count; !parse_count(value, &count)) {
        if (is_number_field(key)) fail("bad " + key + "=" + value);
      } else {
        if (count == 0) fail("a field that is 0: " + key);
        entry.counts[key] = count;
      }
    }
    for (const char* key : {"blocks", "live", "stack"}) {
      if (!seen.contains(key)) fail(std::string("no field ") + key);
    }
    log_.entries.push_back(std::move(entry));
    in_entry_ = true;
  }

  void frame(const std::string& text) {
    if (!in_entry_ && in_tail_ == nullptr) fail("frame outside an entry");
    const bool in_entry = in_tail_ == nullptr;
    Entry& entry = log_.entries.back();
    if (in_entry && entry.cut) fail("frame after ...");
    if (in_entry ? ends_.contains(log_.entries.size() - 1) : !in_tail_->end.empty()) {
      fail("frame after a tail");
    }
    if (in_entry && text == "...") {
      entry.cut = true;
      return;
    }
    if (text.starts_with("^ tail=")) return end_with_tail(text.substr(7));
    const std::vector<std::string> fields = split(text, '\t');
    if (fields.size() > 3) fail("too many fields in a frame");
    Frame frame;
    if (fields.size() >= 2) frame.function = fields[0];
    if (fields.size() == 3) frame.source = fields[1];
    if (fields.size() >= 2 && frame.function.empty()) fail("empty function");
    if (fields.size() == 3) {
      const size_t colon = frame.source.rfind(':');
      if (colon == std::string::npos || colon == 0 || !is_digits(frame.source.substr(colon + 1))) {
        fail("bad source " + frame.source);
      }
    }
    std::string place = fields.back();
    frame.guessed = place.ends_with(")?");
    if (frame.guessed) place.pop_back();
    if (place.size() < 3 || place.front() != '(' || place.back() != ')') fail("bad place " + place);
    const std::string inner = place.substr(1, place.size() - 2);
    if (inner == "inlined") {
      if (fields.size() == 1) fail("inlined frame without function");
      if (frame.guessed) fail("a guessed inlined frame");
      frame.inlined = true;
    } else if (inner.starts_with("0x") && is_hex(inner.substr(2))) {
      frame.offset = std::stoull(inner.substr(2), nullptr, 16);
    } else {
      const size_t plus = inner.rfind("+0x");
      if (plus == std::string::npos || plus == 0 || !is_hex(inner.substr(plus + 3))) {
        fail("bad place " + place);
      }
      frame.offset = std::stoull(inner.substr(plus + 3), nullptr, 16);
      frame.module = inner.substr(0, plus);
      const size_t hash = frame.module.find('#');
      if (hash != std::string::npos) {
        const std::string generation = frame.module.substr(hash + 1);
        if (!is_digits(generation) || std::stoul(generation) < 2) fail("bad generation " + place);
        frame.generation = static_cast<unsigned>(std::stoul(generation));
        frame.module.resize(hash);
      }
    }
    (in_entry ? entry.frames : in_tail_->frames).push_back(std::move(frame));
  }

  struct Tail {
    std::vector<Frame> frames;
    std::string end;  // id of the tail that it ends with; empty: none
  };

  const std::string& text_;
  size_t position_ = 0;
  int line_ = 0;
  int after_entries_ = 0;
  bool in_entry_ = false;
  bool ended_ = false;
  std::map<std::string, Tail> tails_;   // by id
  std::map<size_t, std::string> ends_;  // of entries, by number
  std::set<std::string> ended_with_;
  Tail* in_tail_ = nullptr;
  bool after_tails_ = false;
  Memlog log_;
};

std::string module_key(const Frame& frame) {
  return frame.generation == 1 ? frame.module
                               : frame.module + "#" + std::to_string(frame.generation);
}

void check_meta(const Memlog& log, std::vector<std::string>* wrong) {
  // The order in which the library writes them; those up to `lost` come before the entries.
  static const std::vector<std::string> kOrder = {
      "program",    "command",   "pid",       "parent",  "seq",      "trigger", "label",
      "started",    "taken",     "inherited", "sampled", "delta",    "live",    "peak",
      "peak-error", "allocated", "freed",     "lost",    "recording"};
  std::set<std::string> seen;
  size_t last = 0;
  for (size_t i = 0; i < log.meta.size(); ++i) {
    const std::string& key = log.meta[i].first;
    const bool repeats = key == "note" || key == "module" || key == "kind" || key == "region";
    if (!repeats && !seen.insert(key).second) {
      wrong->push_back("key twice: " + key);
    }
    const auto found = std::find(kOrder.begin(), kOrder.end(), key);
    if (found == kOrder.end()) continue;
    const size_t rank = static_cast<size_t>(found - kOrder.begin());
    if (rank < last) wrong->push_back("key out of order: " + key);
    last = rank;
    if (i >= log.meta_before_entries) wrong->push_back("key after the entries: " + key);
  }
  for (const char* key : {"program", "pid", "seq", "trigger", "started", "taken", "delta", "live",
                          "lost", "host", "library", "resolved", "uptime"}) {
    if (!log.has(key)) wrong->push_back(std::string("no key ") + key);
  }
  for (const char* key : {"pid", "seq"}) {
    if (!is_digits(log.get(key))) wrong->push_back(std::string("not a number: ") + key);
  }
  const std::string trigger = log.get("trigger");
  static const std::set<std::string> kTriggers = {"signal", "exit", "api",      "request",  "peak",
                                                  "growth", "rss",  "snapshot", "recovered"};
  if (!kTriggers.contains(trigger)) {
    wrong->push_back("trigger " + trigger);
  }
  for (const char* key : {"started", "taken"}) {
    const std::string time = log.get(key);
    if (!is_time(time)) wrong->push_back(std::string(key) + ": " + time);
  }
  if (log.get("taken") < log.get("started")) wrong->push_back("taken before started");
  const std::string resolved = log.get("resolved");
  if (resolved != "no" && resolved != "partly" && resolved != "yes") {
    wrong->push_back("resolved: " + resolved);
  }
}

// The keys that a library may write and older ones do not.
void check_facts(const Memlog& log, std::vector<std::string>* wrong) {
  static const std::set<std::string> kAfter = {"kind",          "calls",   "failed-allocations",
                                               "unknown-frees", "misuse",  "reports",
                                               "rss-max",       "virtual", "resolution"};
  std::set<std::string> kinds;
  for (size_t i = 0; i < log.meta.size(); ++i) {
    const auto& [key, value] = log.meta[i];
    if (kAfter.contains(key) && i < log.meta_before_entries && !log.entries.empty()) {
      wrong->push_back("key before the entries: " + key);
    }
    const std::vector<std::string> words = split(value, ' ');
    int64_t number = 0;
    std::map<std::string, int64_t> list;
    bool good = true;
    if (key == "peak") {
      good = words.size() == 3 && words[1] == "bytes" && parse_count(words[0], &number) &&
             is_time(words[2]);
    } else if (key == "peak-error" || key == "sampled" || key == "rss-max" || key == "virtual") {
      good = parse_bytes(value, &number);
    } else if (key == "recording") {
      good = value == "stopped";
    } else if (key == "kind") {
      Amount live;
      good = words.size() == 5 && kinds.insert(words[0]).second && !words[0].empty() &&
             words[0].find_first_not_of(
                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                 "0123456789-") == std::string::npos &&
             parse_amount(value.substr(words[0].size() + 1), false, &live);
    } else if (key == "calls" || key == "misuse") {
      good = parse_list(value, &list);
    } else if (key == "reports") {
      good = words.size() == 2 && words[0].starts_with("written=") &&
             words[1].starts_with("failed=") && parse_list(value, &list);
    } else if (key == "failed-allocations" || key == "unknown-frees") {
      good = parse_count(value, &number);
    } else if (key == "resolution") {
      const size_t point = value.find('.');
      good = words.size() == 2 && words[1] == "ms" && point != std::string::npos &&
             is_digits(value.substr(0, point)) && words[0].size() > point + 1 &&
             words[0].find_first_not_of("0123456789", point + 1) == std::string::npos;
    }
    if (!good) wrong->push_back(key + ": " + value);
  }
}

// What the numbers of entries have to do with each other and with the process. The library reads
// them while threads go on, so only this: lifetimes come of frees and are in order, and no more was
// held at the peak than the peak.
void check_numbers(const Memlog& log, std::vector<std::string>* wrong) {
  int64_t most = log.number("peak");
  if (log.has("peak-error")) most += log.number("peak-error");
  int64_t shares = 0;
  for (const Entry& entry : log.entries) {
    const std::string where = "line " + std::to_string(entry.line) + ": ";
    const auto count = [&](const char* key) {
      const auto at = entry.counts.find(key);
      return at == entry.counts.end() ? 0 : at->second;
    };
    const int64_t least = count("lifetime-min");
    const int64_t mean = count("lifetime-mean");
    const int64_t longest = count("lifetime-max");
    if (longest != 0 && count("frees") == 0) wrong->push_back(where + "lifetime without frees");
    if (least > mean || mean > longest) wrong->push_back(where + "lifetimes out of order");
    if (!entry.kind.empty() || !log.has("peak")) continue;
    shares += count("peak");
    if (count("peak") > most) wrong->push_back(where + "more than the peak");
  }
  if (shares > most && log.has("peak")) wrong->push_back("the shares exceed the peak");
}

void check_entries(const Memlog& log, std::vector<std::string>* wrong) {
  Amount sum;
  std::set<std::string> referenced;
  std::set<std::pair<std::string, std::string>> stacks;
  const Entry* previous = nullptr;
  for (const Entry& entry : log.entries) {
    const std::string where = "line " + std::to_string(entry.line) + ": ";
    if (!entry.kind.empty()) {
      for (const Frame& frame : entry.frames) {
        if (!frame.module.empty()) referenced.insert(module_key(frame));
      }
      continue;
    }
    sum += Amount{entry.bytes, entry.blocks};
    if (log.get("library").find("MTRACE_ENTRIES=net") != std::string::npos && entry.bytes == 0 &&
        entry.blocks == 0 && !entry.counts.contains("peak"))
      wrong->push_back(where + "entry nets to zero");
    if (previous != nullptr && (previous->bytes < entry.bytes || (previous->bytes == entry.bytes &&
                                                                  previous->stack > entry.stack))) {
      wrong->push_back(where + "not sorted");
    }
    previous = &entry;
    if (entry.frames.empty() && !entry.cut) wrong->push_back(where + "no frames");
    std::string places;
    for (const Frame& frame : entry.frames) {
      if (!frame.module.empty()) referenced.insert(module_key(frame));
      places += module_key(frame) + "+" + std::to_string(frame.offset) + (frame.inlined ? "i" : "");
    }
    if (!entry.frames.empty() && entry.frames.back().inlined) {
      wrong->push_back(where + "an inlined frame is inlined into nothing");
    }
    places += (entry.cut ? "..." : "") + entry.call + ' ' + entry.before;
    if (!stacks.insert({entry.stack, places}).second) {
      wrong->push_back(where + "the same stack twice");
    }
  }
  if (sum != log.amount("delta")) {
    wrong->push_back("delta is " + describe(log.amount("delta")) + ", entries sum to " +
                     describe(sum));
  }
  std::set<std::string> declared;
  for (const auto& [key, value] : log.meta) {
    if (key != "module") continue;
    const size_t base = value.rfind(" base=0x");
    // Further words may follow.
    const size_t end = value.find(' ', base == std::string::npos ? 0 : base + 8);
    if (base == std::string::npos || !is_hex(value.substr(base + 8, end - (base + 8)))) {
      wrong->push_back("module without base: " + value);
      continue;
    }
    std::string path = value.substr(0, base);
    const size_t id = path.rfind(" build-id=");
    if (id != std::string::npos) {
      const std::string build_id = path.substr(id + 10);
      if (!build_id.empty() && !is_hex(build_id)) wrong->push_back("build-id: " + value);
      path.resize(id);
    }
    if (!declared.insert(path).second) wrong->push_back("module twice: " + path);
  }
  for (const std::string& path : referenced) {
    if (!declared.contains(path)) wrong->push_back("no module line for " + path);
  }
  for (const std::string& path : declared) {
    if (!referenced.contains(path)) wrong->push_back("module of no frame: " + path);
  }
}

}  // namespace

std::string Memlog::get(const std::string& key) const {
  for (const auto& [name, value] : meta) {
    if (name == key) return value;
  }
  return "";
}

bool Memlog::has(const std::string& key) const {
  return std::any_of(meta.begin(), meta.end(), [&](const auto& m) { return m.first == key; });
}

int64_t Memlog::number(const std::string& key) const {
  const std::string value = get(key);
  int64_t number = -1;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

std::map<std::string, int64_t> Memlog::numbers(const std::string& key) const {
  std::map<std::string, int64_t> numbers;
  std::istringstream words(get(key));
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      numbers[word.substr(0, equals)] = std::atoll(word.c_str() + equals + 1);
    }
  }
  return numbers;
}

Amount Memlog::amount(const std::string& key) const {
  Amount amount;
  if (!has(key)) return amount;
  if (!parse_amount(get(key), key == "delta", &amount)) {
    throw MemlogError(path + ": bad " + key + ": " + get(key));
  }
  return amount;
}

std::string describe(const Amount& amount) {
  return std::to_string(amount.bytes) + " bytes " + std::to_string(amount.blocks) + " blocks";
}

void PrintTo(const Amount& amount, std::ostream* out) { *out << describe(amount); }

Memlog parse_memlog(const std::string& text, const std::string& path) {
  return Parser(text, path).parse();
}

Memlog read_memlog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw MemlogError(path + ": cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_memlog(text.str(), path);
}

std::vector<std::string> complaints(const Memlog& log) {
  std::vector<std::string> wrong;
  check_meta(log, &wrong);
  check_facts(log, &wrong);
  check_numbers(log, &wrong);
  check_entries(log, &wrong);
  for (std::string& line : wrong) line = log.path + ": " + line;
  return wrong;
}

std::vector<std::string> series_complaints(const std::vector<Memlog>& logs) {
  std::vector<std::string> wrong;
  Amount live = logs.empty() ? Amount{} : logs[0].amount("inherited");
  const bool from_nothing = live == Amount{};
  struct Held {
    int64_t bytes = 0;
    std::string frames;
    bool ambiguous = false;
  };
  std::map<std::string, Held> held;
  int64_t seq = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const Memlog& log = logs[i];
    // A merged report begins with the first that it contains.
    if (log.number(log.has("merged") ? "merged" : "seq") != ++seq) {
      wrong.push_back(log.path + ": seq " + log.get("seq") + ", expected " + std::to_string(seq));
    }
    seq = log.number("seq");
    if (log.get("pid") != logs[0].get("pid")) wrong.push_back(log.path + ": another pid");
    if (log.get("started") != logs[0].get("started")) wrong.push_back(log.path + ": other start");
    if (i > 0 && log.get("taken") < logs[i - 1].get("taken")) {
      wrong.push_back(log.path + ": taken before the previous one");
    }
    live += log.amount("delta");
    if (live != log.amount("live")) {
      wrong.push_back(log.path + ": inherited + deltas = " + describe(live) +
                      ", but live: " + describe(log.amount("live")));
    }
    const Amount allocated = log.amount("allocated");
    const Amount freed = log.amount("freed");
    const bool tells = log.has("allocated");
    if (tells && (allocated.bytes - freed.bytes != live.bytes ||
                  allocated.blocks - freed.blocks != live.blocks)) {
      wrong.push_back(log.path + ": allocated - freed is not live");
    }
    int64_t total = 0;
    for (const Entry& entry : log.entries) {
      if (!entry.kind.empty()) continue;
      auto count = [&](const char* key) {
        const auto at = entry.counts.find(key);
        return at == entry.counts.end() ? 0 : at->second;
      };
      if (tells && (count("allocs") - count("frees") != entry.blocks ||
                    count("allocated") - count("freed") != entry.bytes)) {
        wrong.push_back(log.path + ":" + std::to_string(entry.line) +
                        ": allocations less frees are not the change");
      }
      total += entry.live;
      if (!from_nothing) {
        if (entry.live < 0) wrong.push_back(log.path + ": negative live");
        continue;
      }
      // Two modules with one build-id give two stacks one id; then only their sum would be known.
      std::string frames;
      for (const Frame& frame : entry.frames) {
        if (!frame.inlined) frames += module_key(frame) + "+" + std::to_string(frame.offset) + " ";
      }
      Held& stack = held[entry.stack + ' ' + entry.call];
      if (!stack.frames.empty() && stack.frames != frames) stack.ambiguous = true;
      stack.frames = frames;
      stack.bytes += entry.bytes;
      if (!stack.ambiguous && stack.bytes != entry.live) {
        wrong.push_back(log.path + ":" + std::to_string(entry.line) +
                        ": live=" + std::to_string(entry.live) + ", deltas of the stack sum to " +
                        std::to_string(stack.bytes));
      }
    }
    if (total > log.amount("live").bytes) {
      wrong.push_back(log.path + ": the entries' live= exceed # live:");
    }
  }
  return wrong;
}

std::map<std::string, std::vector<Memlog>> read_directory(const std::string& directory) {
  std::map<std::string, std::vector<Memlog>> processes;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".memlog")) continue;
    const size_t dash = name.rfind('-');
    if (dash == std::string::npos) throw MemlogError(name + ": name without seq");
    processes[name.substr(0, dash)].push_back(read_memlog(file.path()));
  }
  for (auto& [name, logs] : processes) {
    std::sort(logs.begin(), logs.end(),
              [](const Memlog& a, const Memlog& b) { return a.number("seq") < b.number("seq"); });
  }
  return processes;
}

}  // namespace mtrace::test
