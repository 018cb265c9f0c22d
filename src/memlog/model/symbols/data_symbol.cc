#include "model/symbols/data_symbol.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <unistd.h>

#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"
#include "util/machine.h"

namespace mtrace::symbols {
namespace {

constexpr unsigned kDataSymbolSeconds = 20;

std::string data_symbol(const DataFile& file, const DataPlace& place) {
  const OpenElf elf = open_elf(file.descriptor);
  const auto wanted =
      elf == nullptr ? std::nullopt : value_in_file(elf.get(), file.map_address, place);
  if (!wanted) return {};
  const int type = place.in_thread() ? STT_TLS : STT_OBJECT;
  std::string found;
  const auto visit = [&](const GElf_Sym& symbol, const char* name) {
    const bool holds = GELF_ST_TYPE(symbol.st_info) == type && *wanted >= symbol.st_value &&
                       *wanted - symbol.st_value < symbol.st_size;
    if (!holds) return false;
    found = demangle(name);
    if (*wanted != symbol.st_value) found += fmt::format("+0x{:x}", *wanted - symbol.st_value);
    return true;
  };
  if (any_symbol(elf.get(), SHT_SYMTAB, visit) || any_dynamic_symbol(elf.get(), visit))
    return found;
  const ModuleSymbols symbols(file.where, file.path, ::dup(file.descriptor));
  const int count = symbols.module() == nullptr ? 0 : dwfl_module_getsymtab(symbols.module());
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    const char* const name =
        dwfl_module_getsym_info(symbols.module(), i, &symbol, &address, nullptr, nullptr, nullptr);
    if (name != nullptr && symbol.st_shndx != SHN_UNDEF && visit(symbol, name)) break;
  }
  return found;
}

}  // namespace

std::string data_symbol_of(const DataFile& file, const DataPlace& place) {
  if (file.descriptor < 0) return {};
  const auto found =
      run_isolated([&] { return data_symbol(file, place); }, kDataSymbolSeconds, file.descriptor);
  ::close(file.descriptor);
  return found.value_or("");
}
namespace {

std::optional<uint64_t> offset_in_storage(Elf* elf, const DataPlace& place) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_TLS) continue;
    const uint64_t align = segment.p_align > 1 ? segment.p_align : 1;
    const uint64_t first = (0 - segment.p_vaddr) & (align - 1);
    const uint64_t offset = place.address - util::machine::tls_storage(place.thread_pointer, align,
                                                                       first, segment.p_memsz);
    return offset < segment.p_memsz ? std::optional<uint64_t>(offset) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> value_in_file(Elf* elf, uint64_t map_address, const DataPlace& place) {
  if (place.in_thread()) return offset_in_storage(elf, place);
  const auto bias = load_bias(elf, map_address, 0);
  if (!bias) return std::nullopt;
  return place.address - *bias;
}

namespace {

constexpr unsigned kDataTypeSeconds = 10;
constexpr int kMostNested = 64;  // of types in types

using Type = std::optional<Dwarf_Die>;

std::string_view name_of(Dwarf_Die die) {
  const char* name = dwarf_diename(&die);
  return name == nullptr ? std::string_view() : name;
}

// What the attribute DW_AT_type of `die` names; nothing: void.
Type type_of(Dwarf_Die die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (dwarf_attr_integrate(&die, DW_AT_type, &attribute) == nullptr) return std::nullopt;
  if (dwarf_formref_die(&attribute, &type) == nullptr) return std::nullopt;
  return type;
}

// Without typedefs and qualifiers.
Type peeled(Type type) {
  for (int i = 0; type && i < kMostNested; ++i) {
    switch (dwarf_tag(&*type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type:
        type = type_of(*type);
        break;
      default:
        return type;
    }
  }
  return std::nullopt;
}

uint64_t size_of(Dwarf_Die type) {
  Dwarf_Word size = 0;
  return dwarf_aggregate_size(&type, &size) == 0 ? size : 0;
}

// Where `text` ends its template argument that begins at `at`.
size_t end_of_argument(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '<') ++depth;
    if (depth == 0 && (text[at] == ',' || text[at] == '>')) break;
    if (text[at] == '>') --depth;
  }
  return at;
}

// Without the arguments that nobody writes.
std::string without_defaults(std::string name) {
  constexpr std::array<std::string_view, 6> kDefaults = {
      ", std::allocator<", ", std::less<",        ", std::hash<",
      ", std::equal_to<",  ", std::char_traits<", ", std::default_delete<"};
  for (const std::string_view one : kDefaults) {
    for (size_t at = 0; (at = name.find(one, at)) != std::string::npos;) {
      name.erase(at, end_of_argument(name, at + 2) - at);
    }
  }
  for (size_t at = 0; (at = name.find(" >", at)) != std::string::npos;) name.erase(at, 1);
  return name;
}

std::string scope_of(Dwarf_Die die) {
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&die, &scopes);
  std::string out;
  for (int i = count - 1; i > 0; --i) {
    const int tag = dwarf_tag(&scopes[i]);
    const bool named = tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
                       tag == DW_TAG_class_type || tag == DW_TAG_union_type;
    const std::string_view name = name_of(scopes[i]);
    // What the library puts between std and its names for its versions.
    if (named && !name.empty() && name != "__cxx11") out += fmt::format("{}::", name);
  }
  std::free(scopes);
  return out;
}

std::string type_text(const Type& type, int depth = 0) {
  if (!type) return "void";
  if (depth == kMostNested) return "...";
  const auto inner = [&] { return type_text(type_of(*type), depth + 1); };
  Dwarf_Die die = *type;
  switch (dwarf_tag(&die)) {
    case DW_TAG_pointer_type:
      return inner() + '*';
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      return inner() + '&';
    case DW_TAG_array_type:
      return inner() + "[]";
    case DW_TAG_const_type:
      return "const " + inner();
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
      return inner();
    case DW_TAG_typedef:  // those of the library's own use tell nobody anything
      return name_of(die).starts_with("__") ? inner() : scope_of(die) + std::string(name_of(die));
    case DW_TAG_subroutine_type:
      return "a function";
    default:
      return name_of(die).empty() ? "a type without a name"
                                  : without_defaults(scope_of(die) + std::string(name_of(die)));
  }
}

Type template_argument(Dwarf_Die type, std::string_view wanted) {
  Dwarf_Die child;
  for (int more = dwarf_child(&type, &child); more == 0; more = dwarf_siblingof(&child, &child)) {
    if (dwarf_tag(&child) == DW_TAG_template_type_parameter && name_of(child) == wanted) {
      return type_of(child);
    }
  }
  return std::nullopt;
}

// What nodes of a container of libstdc++ hold: their type is the base of all nodes.
struct Container {
  std::string text;
  Type value;
};

struct Nodes {
  std::string_view base;      // type of what the container's pointers point to
  std::string_view owner;     // class that has the type of the value as an argument
  std::string_view argument;  // its name
  uint64_t links;             // bytes of the base, which the value follows
};
constexpr std::array<Nodes, 4> kNodes = {{{"_Rb_tree_node_base", "_Rb_tree<", "_Val", 32},
                                          {"_List_node_base", "_List_base<", "_Tp", 16},
                                          {"_Hash_node_base", "_Hashtable<", "_Value", 8},
                                          {"_Fwd_list_node_base", "_Fwd_list_base<", "_Tp", 8}}};

// A pointer in a variable or block.
struct Pointer {
  Dwarf_Die type;
  Container container;    // that it belongs to
  bool to_array = false;  // it points to the first of several
};

// The pointer at `offset` in a `type`.
std::optional<Pointer> find_pointer(Type type, uint64_t offset, Pointer context, int depth = 0);

void note_container(Dwarf_Die type, Pointer& context) {
  const std::string_view name = name_of(type);
  if (name.starts_with("_Vector_base<")) context.to_array = true;
  for (const Nodes& one : kNodes) {
    if (name.starts_with(one.owner))
      context.container.value = template_argument(type, one.argument);
  }
  if (name.empty() || name[0] == '_') return;
  const std::string scope = scope_of(type);
  if (scope == "std::") context.container = {type_text(type), std::nullopt};
}

std::optional<Pointer> in_members(Dwarf_Die type, uint64_t offset, Pointer context, int depth) {
  note_container(type, context);
  Dwarf_Die child;
  for (int more = dwarf_child(&type, &child); more == 0; more = dwarf_siblingof(&child, &child)) {
    const int tag = dwarf_tag(&child);
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
        dwarf_hasattr(&child, DW_AT_external) != 0 || dwarf_hasattr(&child, DW_AT_virtuality) != 0)
      continue;
    Dwarf_Attribute attribute;
    Dwarf_Word begin = 0;
    if (dwarf_attr(&child, DW_AT_data_member_location, &attribute) == nullptr ||
        dwarf_formudata(&attribute, &begin) != 0)
      continue;
    const Type member = type_of(child);
    const uint64_t size = member ? size_of(*member) : 0;
    if (offset < begin || offset - begin >= size) continue;
    if (auto found = find_pointer(member, offset - begin, context, depth + 1)) return found;
  }
  return std::nullopt;
}

std::optional<Pointer> find_pointer(Type type, uint64_t offset, Pointer context, int depth) {
  type = peeled(type);
  if (!type || depth == kMostNested) return std::nullopt;
  Dwarf_Die die = *type;
  switch (dwarf_tag(&die)) {
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      if (offset != 0) return std::nullopt;
      context.type = die;
      return context;
    case DW_TAG_array_type: {
      const Type element = type_of(die);
      const uint64_t size = element ? size_of(*element) : 0;
      return size == 0 ? std::nullopt : find_pointer(element, offset % size, context, depth + 1);
    }
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
      return in_members(die, offset, context, depth);
    default:
      return std::nullopt;
  }
}

// Follows pointers from a variable.
std::vector<std::string> follow(const Type& variable, uint64_t in_variable,
                                const std::vector<uint64_t>& offsets) {
  std::vector<std::string> texts = {type_text(variable)};
  std::optional<Pointer> pointer = find_pointer(variable, in_variable, {});
  for (size_t i = 0; pointer; ++i) {
    const Type pointee = peeled(type_of(pointer->type));
    if (!pointee) break;
    const auto nodes = std::find_if(kNodes.begin(), kNodes.end(), [&](const Nodes& one) {
      return one.base == name_of(*pointee) && !pointer->container.text.empty();
    });
    texts.push_back(nodes != kNodes.end() ? "node of " + pointer->container.text
                                          : type_text(type_of(pointer->type)));
    if (i == offsets.size()) break;
    uint64_t offset = offsets[i];
    if (nodes != kNodes.end()) {
      if (offset < nodes->links) continue;  // to another node
      pointer = find_pointer(pointer->container.value, offset - nodes->links, {});
      continue;
    }
    const uint64_t size = size_of(*pointee);
    // Behind its end lies what a derived class has besides, unless it is one of several.
    if (size == 0 || (offset >= size && !pointer->to_array)) break;
    pointer = find_pointer(pointee, offset % size, {});
  }
  return texts;
}

// The variable at an address, of those that have one.
class Variables {
 public:
  // `in_thread`: `wanted` is an offset in the segment of thread-local variables.
  Variables(uint64_t wanted, bool in_thread) : wanted_(wanted), in_thread_(in_thread) {}

  bool find(Dwarf* dwarf) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die whole;
    Dwarf_Die split;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &whole, &split) == 0) {
      if (in_children(split.addr != nullptr ? split : whole, 0)) return true;
    }
    return false;
  }
  Dwarf_Die found() const { return found_; }
  uint64_t offset() const { return offset_; }

 private:
  bool in_children(Dwarf_Die parent, int depth) {
    if (depth == kMostNested) return false;
    Dwarf_Die child;
    for (int more = dwarf_child(&parent, &child); more == 0;
         more = dwarf_siblingof(&child, &child)) {
      switch (dwarf_tag(&child)) {
        case DW_TAG_variable:
          if (holds(child)) return true;
          break;
        case DW_TAG_namespace:
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
          if (in_children(child, depth + 1)) return true;
          break;
        default:
          break;
      }
    }
    return false;
  }

  bool holds(Dwarf_Die die) {
    Dwarf_Attribute attribute;
    Dwarf_Op* operations = nullptr;
    size_t count = 0;
    if (dwarf_attr(&die, DW_AT_location, &attribute) == nullptr ||
        dwarf_getlocation(&attribute, &operations, &count) != 0 || count != (in_thread_ ? 2 : 1))
      return false;
    uint64_t address = operations[0].number;
    if (in_thread_) {
      const unsigned last = operations[1].atom;
      if ((last != DW_OP_form_tls_address && last != DW_OP_GNU_push_tls_address) ||
          (operations[0].atom != DW_OP_const8u && operations[0].atom != DW_OP_const4u))
        return false;
    } else if (operations[0].atom == DW_OP_addrx || operations[0].atom == DW_OP_GNU_addr_index) {
      Dwarf_Attribute result;
      if (dwarf_getlocation_attr(&attribute, operations, &result) != 0 ||
          dwarf_formaddr(&result, &address) != 0)
        return false;
    } else if (operations[0].atom != DW_OP_addr) {
      return false;
    }
    const Type type = type_of(die);
    const uint64_t size = type ? size_of(*type) : 0;
    if (wanted_ < address || wanted_ - address >= size) return false;
    found_ = die;
    offset_ = wanted_ - address;
    return true;
  }

  uint64_t wanted_;
  bool in_thread_;
  Dwarf_Die found_ = {};
  uint64_t offset_ = 0;
};

// The source, then the types, each on a line.
std::string described(const DataFile& file, const DataPlace& place,
                      const std::vector<uint64_t>& offsets) {
  const OpenElf elf = open_elf(file.descriptor);
  const auto value =
      elf == nullptr ? std::nullopt : value_in_file(elf.get(), file.map_address, place);
  const ModuleSymbols symbols(file.where, file.path, ::dup(file.descriptor));
  if (!value || symbols.module() == nullptr) return {};
  GElf_Addr elf_bias = 0;
  Dwarf_Addr bias = 0;
  dwfl_module_getelf(symbols.module(), &elf_bias);
  Dwarf* const dwarf = dwfl_module_getdwarf(symbols.module(), &bias);
  if (dwarf == nullptr) return {};
  const uint64_t shift = place.in_thread() ? 0 : elf_bias - bias;
  Variables variables(*value + shift, place.in_thread());
  if (!variables.find(dwarf)) return {};
  Dwarf_Die die = variables.found();
  int line = 0;
  const char* source = dwarf_decl_file(&die);
  std::string out;
  if (source != nullptr && dwarf_decl_line(&die, &line) == 0) {
    const std::string_view path = source;
    out = fmt::format("{}:{}", path.substr(path.rfind('/') + 1), line);
  }
  for (const std::string& text : follow(type_of(die), variables.offset(), offsets)) {
    out += '\n' + text;
  }
  return out;
}

}  // namespace

DataType data_type_of(const DataFile& file, const DataPlace& place,
                      const std::vector<uint64_t>& offsets) {
  DataType type;
  if (file.descriptor < 0) return type;
  const std::string text = run_isolated([&] { return described(file, place, offsets); },
                                        kDataTypeSeconds, file.descriptor)
                               .value_or("");
  ::close(file.descriptor);
  size_t at = std::min(text.find('\n'), text.size());
  type.source = text.substr(0, at);
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at + 1), text.size());
    type.types.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return type;
}

}  // namespace mtrace::symbols
