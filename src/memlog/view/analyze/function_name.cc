#include "view/analyze/function_name.h"

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

namespace {

// A function whose first template argument is what the block consists of.
constexpr std::string_view kAllocates[] = {"std::__new_allocator<", "__gnu_cxx::new_allocator<",
                                           "std::allocator<"};
constexpr std::string_view kMakes[] = {" std::make_unique<", " std::make_unique_for_overwrite<"};

// What a container allocates for an element, in GCC's library.
struct Node {
  std::string_view type;
  std::string_view before, after;
};
constexpr Node kNodes[] = {{"std::_List_node<", "node of std::list<", ">"},
                           {"std::_Fwd_list_node<", "node of std::forward_list<", ">"},
                           {"std::_Rb_tree_node<", "tree node of ", ""},
                           {"std::__detail::_Hash_node<", "hash node of ", ""},
                           {"std::_Sp_counted_ptr_inplace<", "", " (make_shared)"}};
constexpr std::string_view kBuckets = "std::__detail::_Hash_node_base*";

// Containers whose block is an array of elements, by functions of theirs.
struct Array {
  std::string_view function;
  std::string_view container;  // empty: std::string
};
constexpr Array kArrays[] = {
    {"std::_Vector_base<", "std::vector<"},
    {"std::vector<", "std::vector<"},
    {"std::_Deque_base<", "std::deque<"},
    {"std::__cxx11::basic_string<char", ""},
};

// The template argument that begins at `at`.
std::string_view argument(std::string_view name, size_t at) {
  int depth = 0;
  for (size_t i = at; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && (c == ',' || c == '>')) {
      const std::string_view text = name.substr(at, i - at);
      return text.ends_with(' ') ? text.substr(0, text.size() - 1) : text;
    }
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
  }
  return {};
}

// The first argument of the function if it is an allocator's, or makes an object.
std::string_view element_of(std::string_view name) {
  for (const std::string_view allocator : kAllocates) {
    if (name.starts_with(allocator) && name.find("::allocate") != name.npos) {
      return argument(name, allocator.size());
    }
  }
  for (const std::string_view maker : kMakes) {
    const size_t at = name.find(maker);
    if (at != name.npos) return argument(name, at + maker.size());
  }
  return {};
}

std::string text_of(std::string_view type) { return short_name(std::string(type)); }

std::string node_of(std::string_view element) {
  for (const Node& node : kNodes) {
    if (!element.starts_with(node.type)) continue;
    return std::string(node.before) + text_of(argument(element, node.type.size())) +
           std::string(node.after);
  }
  return {};
}

}  // namespace

std::string block_type(const profile::Frames& frames, size_t last) {
  std::string_view element;
  for (size_t i = 0; i < frames.size() && i <= last; ++i) {
    const std::string_view name = frames[i].function.text();
    const auto* const array =
        std::find_if(std::begin(kArrays), std::end(kArrays),
                     [&](const Array& one) { return name.starts_with(one.function); });
    if (array != std::end(kArrays)) {
      if (array->container.empty()) return "std::string";
      if (element.empty()) continue;
      return std::string(array->container) + text_of(element) + '>';
    }
    if (!element.empty()) continue;
    element = element_of(name);
    if (element.starts_with(kBuckets)) return "hash buckets";
    const std::string node = node_of(element);
    if (!node.empty()) return node;
  }
  return text_of(element);
}

std::string class_type(const std::string& name) {
  const std::string node = node_of(name);
  return node.empty() ? short_name(name) : node;
}

}  // namespace mtrace::analyze
