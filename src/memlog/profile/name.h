// The name of a function or of a source line. Reports repeat their names in every stack: equal
// names are one text in memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mtrace::profile {

// Lets a lookup use a part of a line without copying it into a string.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

// The texts stay until memlog ends, so a name costs a pointer, and comparing two names compares
// pointers. Only one thread may make names.
class Name {
 public:
  Name() = default;
  Name(std::string_view text);  // NOLINT(google-explicit-constructor)
  Name(const std::string& text) : Name(std::string_view(text)) {}  // NOLINT(*-explicit-constructor)
  Name(const char* text) : Name(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

  const std::string& text() const { return *text_; }
  operator const std::string&() const { return *text_; }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return *text_; }    // NOLINT(google-explicit-constructor)
  bool empty() const { return text_->empty(); }
  size_t size() const { return text_->size(); }

  bool operator==(const Name& other) const = default;

 private:
  static const std::string kNone;

  const std::string* text_ = &kNone;
};

}  // namespace mtrace::profile
