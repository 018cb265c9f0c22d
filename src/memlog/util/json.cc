#include "util/json.h"

#include <nlohmann/json.hpp>

namespace mtrace::json {

Value::Value(std::initializer_list<Value> values) {
  const bool named = std::all_of(values.begin(), values.end(), [](const Value& one) {
    return one.is_array() && one.size() == 2 && one.data_.list->front().as_text() != nullptr;
  });
  if (!named) {
    *this = array(values);
    return;
  }
  *this = object();
  data_.members->reserve(values.size());
  for (const Value& one : values) {
    std::vector<Value>& pair = *one.data_.list;
    (*this)[*pair[0].data_.text] = std::move(pair[1]);
  }
}

Value::Value(size_t count, const Value& value) : Value(array()) {
  data_.list->assign(count, value);
}

Value::Value(const Value& other) : type_(other.type_), data_(other.data_) {
  if (type_ == Type::kText) data_.text = new std::string(*other.data_.text);
  if (type_ == Type::kArray) data_.list = new std::vector<Value>(*other.data_.list);
  if (type_ == Type::kObject) data_.members = new std::vector<Member>(*other.data_.members);
}

void Value::clear() {
  if (type_ == Type::kText) delete data_.text;
  if (type_ == Type::kArray) delete data_.list;
  if (type_ == Type::kObject) delete data_.members;
}

Value Value::array(std::initializer_list<Value> values) {
  Value out;
  out.data_.list = new std::vector<Value>;
  out.type_ = Type::kArray;
  out.data_.list->reserve(values.size());
  for (const Value& one : values) {
    Value& moved = out.data_.list->emplace_back();
    std::swap(moved.type_, one.type_);
    std::swap(moved.data_, one.data_);
  }
  return out;
}

Value Value::object() {
  Value out;
  out.data_.members = new std::vector<Member>;
  out.type_ = Type::kObject;
  return out;
}

size_t Value::size() const {
  if (is_object()) return data_.members->size();
  return elements().size();
}

bool Value::is_empty() const {
  if (as_text() != nullptr) return as_text()->empty();
  if (is_array() || is_object()) return size() == 0;
  return type_ == Type::kTruth ? !data_.truth : as_double() == 0;
}

Value& Value::operator[](std::string_view key) {
  if (is_null()) *this = object();
  if (const Value* found = find(key)) return const_cast<Value&>(*found);
  return data_.members->emplace_back(Member{std::string(key), Value()}).value;
}

const Value* Value::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& one : *data_.members) {
    if (one.key == key) return &one.value;
  }
  return nullptr;
}

void Value::erase(std::string_view key) {
  std::erase_if(*data_.members, [&](const Member& one) { return one.key == key; });
}

void Value::update(Value other) {
  for (Member& one : *other.data_.members) (*this)[one.key] = std::move(one.value);
}

void Value::push_back(Value value) {
  if (is_null()) *this = array();
  data_.list->push_back(std::move(value));
}

const std::vector<Value>& Value::elements() const {
  static const std::vector<Value> kNone;
  return is_array() ? *data_.list : kNone;
}

std::optional<uint64_t> Value::as_unsigned() const {
  const bool whole = type_ == Type::kUnsigned ||
                     (type_ == Type::kSigned && static_cast<int64_t>(data_.number) >= 0);
  return whole ? std::optional(data_.number) : std::nullopt;
}

int64_t Value::as_signed() const {
  if (const auto whole = as_unsigned()) return std::min<uint64_t>(*whole, INT64_MAX);
  if (type_ == Type::kReal) return std::llround(std::clamp(data_.real, -9e18, 9e18));
  return type_ == Type::kSigned ? static_cast<int64_t>(data_.number) : 0;
}

double Value::as_double() const {
  return type_ == Type::kReal ? data_.real : static_cast<double>(as_signed());
}

bool operator==(const Value& a, const Value& b) {
  using Type = Value::Type;
  if (a.as_unsigned() && b.as_unsigned()) return a.data_.number == b.data_.number;
  if (a.type_ != b.type_) return false;
  if (a.type_ == Type::kTruth) return a.data_.truth == b.data_.truth;
  if (a.type_ == Type::kReal) return a.data_.real == b.data_.real;
  if (a.type_ == Type::kText) return *a.data_.text == *b.data_.text;
  if (a.type_ == Type::kArray) return *a.data_.list == *b.data_.list;
  if (a.type_ == Type::kObject) return *a.data_.members == *b.data_.members;
  return a.is_null() || a.data_.number == b.data_.number;
}

// Writes the structure; the library writes texts with characters to escape, and fractions.
class TextWriter {
 public:
  TextWriter(bool lines, Letters letters) : lines_(lines), letters_(letters) {}

  void write(const Value& value, size_t depth = 0) {
    using Type = Value::Type;
    const auto& data = value.data_;
    switch (value.type_) {
      case Type::kNull:
        out_ += "null";
        return;
      case Type::kTruth:
        out_ += data.truth ? "true" : "false";
        return;
      case Type::kSigned:
        out_ += std::to_string(static_cast<int64_t>(data.number));
        return;
      case Type::kUnsigned:
        out_ += std::to_string(data.number);
        return;
      case Type::kReal:
        out_ += nlohmann::json(data.real).dump();
        return;
      case Type::kText:
        write(*data.text);
        return;
      case Type::kArray:
        list(*data.list, depth, '[', ']', [&](const Value& one) { write(one, depth + 1); });
        return;
      case Type::kObject:
        list(*data.members, depth, '{', '}', [&](const Member& one) {
          write(one.key);
          out_ += lines_ ? ": " : ":";
          write(one.value, depth + 1);
        });
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void write(const std::string& text) {
    const bool simple = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    });
    if (simple) {
      out_.append(1, '"').append(text).append(1, '"');
    } else {
      out_ += nlohmann::json(text).dump(-1, ' ', letters_ == Letters::kAscii,
                                        nlohmann::json::error_handler_t::replace);
    }
  }
  template <typename All, typename Write>
  void list(const All& all, size_t depth, char begin, char end, const Write& write_one) {
    out_ += begin;
    for (const auto& one : all) {
      if (&one != &all.front()) out_ += ',';
      if (lines_) out_.append(1, '\n').append(depth + 1, ' ');
      write_one(one);
    }
    if (lines_ && !all.empty()) out_.append(1, '\n').append(depth, ' ');
    out_ += end;
  }

  const bool lines_;
  const Letters letters_;
  std::string out_;
};

namespace {

std::string written(const Value& value, bool lines, Letters letters) {
  TextWriter writer(lines, letters);
  writer.write(value);
  return writer.take();
}

// Takes what the library's parser finds. The values that hold the next one are on a stack.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Value::object()); }
  bool start_array(size_t) override { return open(Value::array()); }
  bool key(std::string& key) override {
    keys_.back() = std::move(key);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
  Value take() { return std::move(whole_); }

 private:
  bool add(Value value) {
    if (open_.empty()) {
      whole_ = std::move(value);
    } else if (open_.back().is_object()) {
      open_.back()[keys_.back()] = std::move(value);
    } else {
      open_.back().push_back(std::move(value));
    }
    return true;
  }
  bool open(Value value) {
    open_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Value value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(value));
  }

  Value whole_;
  std::vector<Value> open_;
  std::vector<std::string> keys_;  // of each open value, the member that comes
};

}  // namespace

std::optional<Value> parse(std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text, &builder)) return std::nullopt;
  return builder.take();
}

std::string text(const Value& value) { return written(value, true, Letters::kAll) + '\n'; }
std::string line(const Value& value) { return written(value, false, Letters::kAll) + '\n'; }
std::string compact(const Value& value, Letters letters) { return written(value, false, letters); }

}  // namespace mtrace::json
