#include "view/analyze/function_name.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "format/memlog.h"
#include "util/file.h"

namespace mtrace::analyze {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kLongestArguments = 20;  // columns of template arguments that stay

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The operator's symbol at the front of `text`, which follows the word "operator".
std::string_view symbol_of(std::string_view text) {
  for (const std::string_view symbol :
       {"<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "==",   "!=", "&&",
        "||",  "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "^=", "&=", "|=", "\"\"", "+",  "-",
        "*",   "/",   "%",   "^",   "&",  "|",  "~",  "!",  "=",  "<",  ">",  ","}) {
    if (text.starts_with(symbol)) return text.substr(0, symbol.size());
  }
  return {};
}

// Position of the bracket that closes the one at `open`; kNone: nothing does.
size_t closing(std::string_view text, size_t open) {
  const char opens = text[open];
  const char closes = opens == '<' ? '>' : opens == '(' ? ')' : opens == '{' ? '}' : ']';
  for (size_t i = open + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == closes) return i;
    if (opens == '<' && c == '-' && i + 1 < text.size() && text[i + 1] == '>') {
      ++i;
      continue;
    }
    // Inside parentheses < and > may be operators: "(a<b)1".
    const bool nests = c == '(' || c == '{' || c == '[' || (c == '<' && opens != '(');
    if (!nests) continue;
    i = closing(text, i);
    if (i == kNone) return kNone;
  }
  return kNone;
}

// What Python writes in brackets: "outer.<locals>.<lambda>".
bool is_python_scope(std::string_view inside) {
  for (const std::string_view scope :
       {"locals", "lambda", "module", "listcomp", "setcomp", "dictcomp", "genexpr"}) {
    if (inside == scope) return true;
  }
  return false;
}

// What may follow the parameters of a function and says no more about which it is.
bool ends_name(std::string_view text) {
  for (const std::string_view word :
       {" const", " volatile", " &", " &&", " noexcept", " [", "[abi:", ".", "@", " (."}) {
    if (text.starts_with(word)) return true;
  }
  return text.empty();
}

class Parser {
 public:
  Parser(std::string_view text, bool brief) : text_(text), brief_(brief) {}

  std::optional<std::string> name() {
    while (at_ < text_.size() && !ended_) {
      if (!step()) return std::nullopt;
    }
    // A blank that no parameters follow is no return type's.
    if (blank_ && !parameters_) return std::nullopt;
    if (brief_) drop_call_of_lambda();
    if (out_.empty()) return std::nullopt;
    return std::move(out_);
  }

 private:
  bool begins(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool at_word() const { return at_ == 0 || !is_letter(text_[at_ - 1]); }

  // Takes what comes next. False: this is no name of a function.
  bool step() {
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    constexpr std::string_view kOperator = "operator";
    if (begins(kAnonymous)) return skip(kAnonymous.size()) && skip_colons();
    if (begins("{anonymous}::")) return skip(13);
    if (at_word() && (begins("decltype(") || begins("decltype ("))) return decltype_();
    if (at_word() && begins(kOperator) && text_.size() > at_ + kOperator.size() &&
        !is_letter(text_[at_ + kOperator.size()])) {
      return operator_();
    }
    switch (text_[at_]) {
      case '<':
        return arguments();
      case '(':
        return parameters();
      case '[':
        return tag();
      case '{':
        return braces();
      case ' ':
        return blank();
      default:
        out_ += text_[at_++];
        return true;
    }
  }

  bool skip(size_t count) {
    at_ += count;
    return true;
  }
  bool skip_colons() { return !begins("::") || skip(2); }

  // A return type, as a rule; "decltype(nullptr)" ends in the blank after it.
  bool decltype_() {
    const size_t end = closing(text_, text_.find('(', at_));
    if (end == kNone) return false;
    out_ += "decltype";
    at_ = end + 1;
    return true;
  }

  bool operator_() {
    constexpr size_t kWord = 8;
    out_ += "operator";
    at_ += kWord;
    const std::string_view symbol = symbol_of(text_.substr(at_));
    if (!symbol.empty()) {
      out_ += symbol;
      at_ += symbol.size();
      if (begins(" <")) ++at_;  // "operator<< <char>"
      return true;
    }
    // new, delete, co_await, or a conversion to a type.
    while (at_ < text_.size() && text_[at_] != '(') {
      if (text_[at_] == '<') {
        if (!arguments()) return false;
      } else {
        out_ += text_[at_++];
      }
    }
    return true;
  }

  bool arguments() {
    const size_t end = closing(text_, at_);
    if (end == kNone) return false;
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (is_python_scope(inside) && (out_.empty() || out_.ends_with('.'))) {
      out_ += fmt::format("<{}>", inside);
    } else if (out_.empty() || out_.ends_with("::")) {  // Rust: <T as U>::f
      const size_t as = inside.find(" as ");
      std::string_view type = inside.substr(0, as);
      while (type.starts_with('&') || type.starts_with('*')) type.remove_prefix(1);
      out_ += Parser(type, brief_).name().value_or(std::string(type));
    } else if (brief_) {
      out_ += '<' + shortened(inside) + '>';
    }
    return true;
  }

  static std::string shortened(std::string_view inside) {
    std::string out;
    for (size_t i = 0; i < inside.size(); ++i) {
      const size_t end = inside[i] == '<' ? closing(inside, i) : kNone;
      if (end == kNone) {
        out += inside[i];
        continue;
      }
      out += '<' + shortened(inside.substr(i + 1, end - i - 1)) + '>';
      i = end;
    }
    return out.size() <= kLongestArguments ? out : "...";
  }

  bool parameters() {
    const size_t end = closing(text_, at_);
    if (end == kNone || out_.empty()) return false;
    if (out_.ends_with('.')) {  // Go: main.(*Server).serve
      out_ += text_.substr(at_, end + 1 - at_);
      at_ = end + 1;
      return true;
    }
    parameters_ = true;
    at_ = end + 1;
    // What is local to a function goes on behind its parameters and their "const".
    const size_t local = text_.find("::", at_);
    if (local != kNone &&
        (local == at_ || (ends_name(text_.substr(at_)) && text_.find('(', at_) > local))) {
      at_ = local;
      return true;
    }
    ended_ = ends_name(text_.substr(at_));
    return ended_;
  }

  // [abi:cxx11], or [clone .cold] after a blank.
  bool tag() {
    const size_t end = closing(text_, at_);
    if (end == kNone) return false;
    if (!begins("[abi:") && !begins("[clone ")) out_ += text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return true;
  }

  bool braces() {
    const size_t end = closing(text_, at_);
    if (end == kNone) return false;
    std::string_view inside = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    const size_t open = inside.find('(');
    const size_t close = inside.rfind(')');
    if (brief_ && inside.starts_with("{lambda(") && close != kNone && close > open) {
      out_ += inside.substr(0, open);
      out_ += inside.substr(close + 1);
    } else {
      out_ += inside;
    }
    return true;
  }

  // What stood before a blank is the return type.
  bool blank() {
    if (begins(" [clone ")) return ended_ = true;
    blank_ = true;
    out_.clear();
    return skip(1);
  }

  void drop_call_of_lambda() {
    constexpr std::string_view kCall = "::operator()";
    const size_t call = out_.rfind(kCall);
    if (call == kNone || call == 0 || out_[call - 1] != '}') return;
    out_.resize(call);
  }

  std::string_view text_;
  bool brief_;
  std::string out_;
  size_t at_ = 0;
  bool blank_ = false;
  bool parameters_ = false;
  bool ended_ = false;
};

// Without what compilers append to the symbols of the parts and copies of a function.
std::string_view without_clone(std::string_view name) {
  for (const std::string_view suffix :
       {".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".llvm."}) {
    const size_t at = name.find(suffix);
    if (at != kNone && at != 0) name = name.substr(0, at);
  }
  return name;
}

}  // namespace

std::string called_name(std::string_view function) {
  function = without_clone(function);
  return Parser(function, false).name().value_or(std::string(function));
}

std::string brief_name(std::string_view function) {
  const std::string name = short_name(std::string(without_clone(function)));
  return Parser(name, true).name().value_or(name);
}
namespace {

void add(uint64_t& hash, std::string_view text) {
  hash = format::fnv1a(text.data(), text.size(), hash);
  hash = format::fnv1a("", 1, hash);  // parts the texts
}

}  // namespace

uint64_t function_id(const profile::Frames& frames, const std::vector<profile::Module>& modules) {
  if (frames.empty()) return 0;
  uint64_t hash = format::kFnv1aBasis;
  for (size_t i = 0; i < frames.size(); ++i) {
    const profile::Frame& frame = frames[i];
    if (!frame.function.empty()) {
      add(hash, called_name(frame.function.text()));
    } else if (frame.place == profile::Place::kModule) {
      add(hash, util::base_name(modules[frame.module].path));
    } else {
      add(hash, "");
    }
  }
  return hash;
}
namespace {

// Position after the bracket that closes the one opened just before `at`; npos: it is not closed.
// The ">" of "->" and of operators is none.
size_t after_closing(const std::string& name, size_t at) {
  for (int depth = 1; at < name.size(); ++at) {
    if (name[at] == '<') ++depth;
    if (name[at] == '>' && name[at - 1] != '-' && --depth == 0) return at + 1;
  }
  return std::string::npos;
}

void drop_argument(std::string& name, std::string_view opening) {
  for (size_t at = 0; (at = name.find(opening, at)) != std::string::npos;) {
    const size_t end = after_closing(name, at + opening.size());
    if (end == std::string::npos) return;
    name.erase(at, end - at);
  }
}

void replace(std::string& name, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = name.find(from, at)) != std::string::npos; at += to.size()) {
    name.replace(at, from.size(), to);
  }
}

}  // namespace

std::string short_name(std::string name) {
  if (name.find("operator<") != std::string::npos || name.find("operator>") != std::string::npos ||
      name.find("operator->") != std::string::npos) {
    return name;  // its brackets do not pair
  }
  replace(name, "std::__cxx11::", "std::");
  constexpr std::string_view kDefaults[] = {", std::allocator<", ", std::char_traits<",
                                            ", std::less<",      ", std::hash<",
                                            ", std::equal_to<",  ", std::default_delete<"};
  for (const std::string_view opening : kDefaults) drop_argument(name, opening);
  replace(name, " >", ">");
  replace(name, "std::basic_string<char>", "std::string");
  replace(name, "std::basic_string_view<char>", "std::string_view");
  return name;
}

}  // namespace mtrace::analyze
