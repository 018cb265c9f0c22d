// A JSON value, and its text. Only json.cc includes the JSON library: its templates take longer to
// compile than all else in a source that uses them.
#pragma once

#include <concepts>

#include "util/prelude.h"

namespace mtrace::json {

struct Member;
class Value;

template <typename T>
concept Elements = requires(const T& all) {
  typename T::value_type;
  all.begin();
  all.size();
}
&&!std::convertible_to<T, std::string_view> && !std::same_as<T, Value>;

// Null, a truth value, a number, a text, a list, or an object that keeps its members in the order
// in which they were added. 16 bytes and what it points to.
class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Value(T truth) : type_(Type::kTruth) {
    data_.truth = truth;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T number)
      : type_(std::signed_integral<T> ? Type::kSigned : Type::kUnsigned) {
    data_.number = static_cast<uint64_t>(number);
  }
  Value(double number) : type_(Type::kReal) { data_.real = number; }
  Value(std::string text) : type_(Type::kText) { data_.text = new std::string(std::move(text)); }
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  template <Elements T>
  Value(const T& all) : Value(array()) {
    for (const auto& one : all) push_back(one);
  }
  // {{"name", value}, ...} is an object, any other list of values a list. Moves out of `values`.
  Value(std::initializer_list<Value> values);
  // A list of `value`, `count` times.
  Value(size_t count, const Value& value);

  Value(const Value& other);
  Value(Value&& other) noexcept : type_(other.type_), data_(other.data_) {
    other.type_ = Type::kNull;
  }
  Value& operator=(Value other) noexcept {
    std::swap(type_, other.type_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Value() { clear(); }

  static Value array(std::initializer_list<Value> values = {});
  static Value object();

  bool is_null() const { return type_ == Type::kNull; }
  bool is_array() const { return type_ == Type::kArray; }
  bool is_object() const { return type_ == Type::kObject; }
  // The elements of a list, the members of an object, otherwise 0.
  size_t size() const;
  // Null, false, 0, or a text, list or object that is empty.
  bool is_empty() const;

  // A member, added as null if there is none. A null becomes an object.
  Value& operator[](std::string_view key);
  // The member, or nullptr.
  const Value* find(std::string_view key) const;
  void erase(std::string_view key);
  // Sets each member of `other`.
  void update(Value other);

  // A null becomes a list.
  void push_back(Value value);
  const Value& back() const { return data_.list->back(); }
  // Of a list; of any other value none.
  const std::vector<Value>& elements() const;

  // The text, or nullptr; the number if it is a whole one from 0, or nothing.
  const std::string* as_text() const { return type_ == Type::kText ? data_.text : nullptr; }
  std::optional<uint64_t> as_unsigned() const;
  bool is_number() const { return type_ >= Type::kSigned && type_ <= Type::kReal; }
  // A number, rounded and at most INT64_MAX; 0 for any other value.
  int64_t as_signed() const;
  double as_double() const;

  friend bool operator==(const Value& a, const Value& b);

 private:
  enum class Type : uint8_t { kNull, kTruth, kSigned, kUnsigned, kReal, kText, kArray, kObject };
  friend class TextWriter;
  void clear();

  // Mutable: the elements of an initializer list are constant, and are moved all the same.
  mutable Type type_ = Type::kNull;
  mutable union {
    bool truth;
    uint64_t number;  // of kSigned: two's complement
    double real;
    std::string* text;
    std::vector<Value>* list;
    std::vector<Member>* members;
  } data_ = {};
};

struct Member {
  std::string key;
  Value value;
  bool operator==(const Member&) const = default;
};

// Returns the value that `text` is, or nothing if it is not JSON.
std::optional<Value> parse(std::string_view text);

// Return the value as text, one line a value, or on one line; both end with a newline. Bytes that
// are not UTF-8 become U+FFFD.
std::string text(const Value& value);
std::string line(const Value& value);
// Returns the text without a space or newline; kAscii escapes all other characters.
enum class Letters { kAll, kAscii };
std::string compact(const Value& value, Letters letters = Letters::kAll);

}  // namespace mtrace::json
