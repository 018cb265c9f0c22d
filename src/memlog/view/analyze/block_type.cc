#include "view/analyze/block_type.h"

#include <algorithm>
#include <string_view>

#include "view/analyze/function_name.h"

namespace mtrace::analyze {
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
