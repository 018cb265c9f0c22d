#include "surface/cli/arguments.h"

#include "util/text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

// Damerau and Levenshtein's distance, of optimal string alignment: letters left out, added,
// replaced, and neighbours swapped.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) now[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(now);
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      now[j] = std::min({replaced, last[j] + 1, now[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
  }
  return now[b.size()];
}

// " (did you mean --depth?)"; empty: nothing known is similar.
std::string question(const std::string& word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant);
}

// What options of other programs, and of other commands, are called here. The first that the
// command has counts.
constexpr std::pair<const char*, const char*> kMeant[] = {
    {"--limit", "--number"},   {"--top", "--number"}, {"--count", "--number"},
    {"--limit", "--last"},     {"--top", "--last"},   {"--number", "--last"},
    {"--all", "--number 0"},   {"--sort", "--by"},    {"--filter", "--include"},
    {"--pattern", "--include"}};

std::string meant_by(const Manual& manual, const std::string& word) {
  for (const auto& [given, meant] : kMeant) {
    const std::string option = meant;
    if (word == given && find_option(manual, option.substr(0, option.find(' '))) != nullptr) {
      return fmt::format(" (did you mean {}?)", option);
    }
  }
  return {};
}

[[noreturn]] void unknown_option(const Manual& manual, const std::string& word) {
  std::vector<std::string> names = {"--help"};
  for (const Option& option : manual.options) names.emplace_back(option.name);
  const std::string meant = meant_by(manual, word);
  throw UsageError(fmt::format("{}: unknown option {}{}", manual.name, word,
                               meant.empty() ? question(word, names) : meant));
}

}  // namespace

const Option* find_option(const Manual& manual, const std::string& name) {
  for (const Option& option : manual.options) {
    if (name == option.name || (*option.brief != '\0' && name == option.brief)) return &option;
  }
  return nullptr;
}

std::vector<std::string> choices_of(const char* choices) {
  std::vector<std::string> words;
  if (*choices == '\0') return words;
  for (const std::string_view word : util::split(choices, '|')) words.emplace_back(word);
  return words;
}

Arguments::Arguments(const Manual& manual, const Given& given, std::vector<std::string> operands)
    : command_(manual.name), operands_(std::move(operands)), before_dashes_(operands_.size()) {
  for (const Option& option : manual.options) {
    if (*option.choices != '\0') choices_[option.name] = option.choices;
  }
  for (const auto& [name, value] : given) given_[name].push_back(value);
  check_combinations(manual);
}

Arguments::Arguments(const Manual& manual, const std::vector<std::string>& words)
    : Arguments(manual, Given(), {}) {
  bool options = true;
  bool dashes = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!options || word.size() < 2 || word[0] != '-') {
      operands_.push_back(word);
      before_dashes_ += dashes ? 0 : 1;
      if (manual.ends_at_operand) options = false;
      continue;
    }
    if (word == "--") {
      options = false;
      dashes = true;
      continue;
    }
    if (word == "--help" || word == "-h") {
      given_["--help"].emplace_back();
      continue;
    }
    // "--depth=3" and "-n3" as well as two words; "--events=full" is a form of "--events".
    const bool brief = word[1] != '-';
    const bool is_form = !brief && find_option(manual, word) != nullptr;
    const size_t equals = std::min(word.find('='), word.size());
    if (is_form && equals < word.size()) given_[word.substr(0, equals)].emplace_back();
    const size_t end = brief ? 2 : is_form ? word.size() : equals;
    const Option* option = find_option(manual, word.substr(0, end));
    if (option == nullptr) unknown_option(manual, word.substr(0, brief ? word.size() : end));
    const bool attached = end < word.size();
    if (*option->value == '\0') {
      if (attached && !brief) {
        throw UsageError(fmt::format("{}: {} takes no value", manual.name, option->name));
      }
      if (attached) unknown_option(manual, word);
      given_[option->name].emplace_back();
    } else if (attached) {
      given_[option->name].push_back(word.substr(brief ? end : end + 1));
    } else if (++i < words.size() && words[i] != "--") {
      given_[option->name].push_back(words[i]);
      if (i + 1 == words.size()) {
        took_last_ = fmt::format("{} took {} as its value ({})", word, words[i], option->value);
      }
    } else {
      throw UsageError(
          fmt::format("{}: {} needs a value ({})", manual.name, option->name, option->value));
    }
  }
  if (!has("--help")) check_combinations(manual);
}

void Arguments::check_combinations(const Manual& manual) const {
  // "--events=full" may be an option, or a value of one.
  const auto name_of = [&](const std::string& term) {
    return find_option(manual, term) != nullptr ? term : term.substr(0, term.find('='));
  };
  const auto is_given = [&](const std::string& term) {
    const std::string name = name_of(term);
    return has(name) && (name == term || value(name) == term.substr(name.size() + 1));
  };
  for (const Option& option : manual.options) {
    if (!has(option.name)) continue;
    std::vector<std::string> needed = choices_of(option.needs);
    std::erase_if(needed, [&](const auto& term) { return !find_option(manual, name_of(term)); });
    if (!needed.empty() && std::none_of(needed.begin(), needed.end(), is_given)) {
      throw UsageError(
          fmt::format("{}: {} needs {}", command_, option.name, fmt::join(needed, " or ")));
    }
    for (const std::string& term : choices_of(option.excludes)) {
      if (!is_given(term)) continue;
      throw UsageError(fmt::format("{}: {} cannot be used with {}", command_, option.name, term));
    }
  }
}

std::string Arguments::value(const std::string& name, const std::string& otherwise) const {
  const auto found = given_.find(name);
  return found == given_.end() ? otherwise : found->second.back();
}

std::string Arguments::lacking(const std::string& what) const {
  const bool is_taken = operands_.empty() && !took_last_.empty();
  return fmt::format("{}: {}{}", command_, what, is_taken ? ": " + took_last_ : "");
}

std::vector<std::string> Arguments::values(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>() : found->second;
}

void Arguments::replace(std::vector<std::string> operands,
                        const std::vector<std::string>& without) {
  operands_ = std::move(operands);
  before_dashes_ = operands_.size();
  for (const std::string& name : without) given_.erase(name);
}

long Arguments::number(const std::string& name, long otherwise, long minimum, long maximum) const {
  if (!has(name)) return otherwise;
  const auto given = util::read_unsigned(value(name), static_cast<uint64_t>(maximum));
  if (!given || static_cast<long>(*given) < minimum) {
    throw UsageError(fmt::format("{}: {} {} is not a number from {} to {}", command_, name,
                                 value(name), minimum, maximum));
  }
  return static_cast<long>(*given);
}

std::optional<uint64_t> Arguments::milliseconds(const std::string& name, uint64_t least,
                                                uint64_t most, const char* range) const {
  if (!has(name)) return std::nullopt;
  const auto time = text::read_duration(value(name), 1000);
  if (time && *time >= least && *time <= most) return time;
  throw UsageError(fmt::format("{}: {} {} is not a time {}", command_, name, value(name), range));
}

std::optional<uint64_t> Arguments::bytes(const std::string& name, uint64_t least,
                                         const char* range) const {
  if (!has(name)) return std::nullopt;
  const auto size = text::read_size(value(name));
  if (size && *size >= least) return size;
  throw UsageError(fmt::format("{}: {} {} is not a size {}", command_, name, value(name), range));
}

std::string Arguments::choice(const std::string& name) const {
  const std::vector<std::string> choices = choices_of(choices_.at(name).c_str());
  std::string given = value(name, choices.front());
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return given;
  throw UsageError(fmt::format("{}: {} {} is not one of {}{}", command_, name, given,
                               fmt::join(choices, ", "), question(given, choices)));
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  // Of two words of three letters that differ in two, none is meant for the other.
  const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  size_t least = std::max<size_t>(1, letters / 3) + 1;
  for (const std::string& candidate : known) {
    const bool begins = word.size() >= 2 && candidate.starts_with(word);
    const size_t far = begins ? 1 : distance(word, candidate);
    if (far < least) {
      least = far;
      best = candidate;
    }
  }
  return best;
}

std::string joined(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto doubled = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), doubled), text.end());
  return text;
}

std::string wrapped(const std::string& text, size_t indent, size_t width) {
  std::string out;
  size_t column = 0;
  const std::string line = joined(text);
  for (const std::string_view word : util::split(line, ' ')) {
    if (word.empty()) continue;
    if (column != 0 && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out.append(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + '\n';
}

std::string manual_text(const Manual& manual, size_t width) {
  std::string out = fmt::format("memlog {}: {}\n\nUsage:\n", manual.name, manual.purpose);
  for (const std::string_view line : util::split(manual.synopsis, '\n')) {
    out += fmt::format("  memlog {}{}{}\n", manual.name, line.empty() ? "" : " ", line);
  }
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) out += '\n' + wrapped(paragraph, 0, width);
    paragraph.clear();
  };
  bool in_example = false;
  for (const std::string_view line : util::split(manual.text, '\n')) {
    const bool example = line.starts_with("  ");
    if (line.empty() || example) flush();
    if (example) out += fmt::format("{}{}\n", in_example ? "" : "\n", line);
    in_example = example;
    if (!example && !line.empty()) paragraph += fmt::format("{} ", line);
  }
  flush();
  if (!manual.options.empty()) out += "\nOptions:\n";
  for (const Option& option : manual.options) {
    out += fmt::format("  {}{}{}{}{}\n", option.brief, *option.brief == '\0' ? "" : ", ",
                       option.name, *option.value == '\0' ? "" : " ", option.value);
    out += wrapped(option.help, 6, width);
  }
  out += "\nExit status:\n";
  out += wrapped(manual.status, 2, width);
  if (*manual.examples != '\0') out += fmt::format("\nExamples:\n{}", manual.examples);
  return out;
}

}  // namespace mtrace::cli
