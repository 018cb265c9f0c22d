#include "model/symbols/dwarf_index.h"

#include <dwarf.h>

#include "model/symbols/elf_file.h"

namespace mtrace::symbols {
namespace {

constexpr int kMaxScopes = 8;  // from an inlined function to its declaration

// The declaration, which is inside the class or namespace.
Dwarf_Die declaration_of(const Dwarf_Die& die) {
  Dwarf_Die at = die;
  for (int step = 0; step < kMaxScopes; ++step) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    if (dwarf_formref_die(dwarf_attr(&at, DW_AT_abstract_origin, &attribute), &next) == nullptr &&
        dwarf_formref_die(dwarf_attr(&at, DW_AT_specification, &attribute), &next) == nullptr) {
      break;
    }
    at = next;
  }
  return at;
}

bool is_cxx(Dwarf_Die* die) {
  Dwarf_Die unit;
  if (dwarf_diecu(die, &unit, nullptr, nullptr) == nullptr) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
      return true;
    default:
      return false;
  }
}

// A scope as demanglers write it; empty: it adds nothing to the name.
std::string scope_text(Dwarf_Die* scope) {
  const char* name = dwarf_diename(scope);
  const std::string_view text = name == nullptr ? "" : name;
  switch (dwarf_tag(scope)) {
    case DW_TAG_namespace:
      if (dwarf_hasattr(scope, DW_AT_export_symbols) && !text.empty()) return {};  // inline
      return text.empty() ? "(anonymous namespace)" : std::string(text);
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
      if (text.empty()) return "{unnamed type}";
      // GCC's <lambda(int)>.
      if (text.starts_with("<lambda") && text.ends_with('>')) {
        return '{' + std::string(text.substr(1, text.size() - 2)) + '}';
      }
      return std::string(text);
    case DW_TAG_subprogram:
      return std::string(text);
    default:
      return {};
  }
}

}  // namespace

std::string DwarfScopes::name(Dwarf_Die* die) {
  const char* own = dwarf_diename(die);
  const std::string plain = own == nullptr ? "" : own;
  Dwarf_Die declaration = declaration_of(*die);
  if (plain.empty() || !is_cxx(&declaration)) return plain;
  const auto [place, added] = known_.try_emplace(declaration.addr, plain);
  if (!added) return place->second;
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&declaration, &scopes);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(scopes, &std::free);
  std::string out;
  for (int i = count - 1; i > 0; --i) {
    std::string scope = scope_text(&scopes[i]);
    // GCC gives a lambda's class no name.
    if (i == 1 && plain == "operator()" && scope == "{unnamed type}") scope = "{lambda}";
    if (!scope.empty()) out += scope + "::";
  }
  return place->second = out + plain;
}

namespace {

// Deeper trees are not walked: only damaged files have them.
constexpr int kMaxDepth = 256;
constexpr int kMaxSteps = 64;  // back over ranges that begin before the address and end before it

template <typename Visit>
void for_each_range(Dwarf_Die* die, Visit&& visit) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  ptrdiff_t offset = 0;
  while ((offset = dwarf_ranges(die, offset, &base, &begin, &end)) > 0) {
    if (begin < end) visit(begin, end);
  }
}

// The range that holds `address` and begins last; ranges are sorted by begin.
template <typename Ranges>
auto find_range(Ranges& ranges, uint64_t address) -> decltype(&ranges[0]) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](uint64_t value, const auto& r) { return value < r.begin; });
  for (int step = 0; step < kMaxSteps && after != ranges.begin(); ++step) {
    --after;
    if (address < after->end) return &*after;
  }
  return nullptr;
}

// A source line: FILE:LINE, and the path of the file.
struct Spot {
  std::string source;
  std::string path;
};

// The path is relative to the directory of the compilation where the compiler was given it so.
Spot spot(Dwarf_Die* unit, const char* file, uint64_t line) {
  if (file == nullptr || *file == '\0' || line == 0) return {};
  std::string path = file;
  Dwarf_Attribute attribute;
  const char* directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  if (*file != '/' && directory != nullptr) path = std::string(directory) + '/' + file;
  const char* slash = std::strrchr(file, '/');
  return {fmt::format("{}:{}", slash == nullptr || slash[1] == '\0' ? file : slash + 1, line),
          std::move(path)};
}

Spot line_at(Dwarf_Die* unit, uint64_t address) {
  Dwarf_Line* row = dwarf_getsrc_die(unit, address);
  int line = 0;
  if (row == nullptr || dwarf_lineno(row, &line) != 0 || line <= 0) return {};
  return spot(unit, dwarf_linesrc(row, nullptr, nullptr), static_cast<uint64_t>(line));
}

// Where an inlined function was called.
Spot call_site(Dwarf_Die* unit, Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  const bool known =
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) == 0 &&
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0 &&
      dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count;
  return known ? spot(unit, dwarf_filesrc(files, file, nullptr, nullptr), line) : Spot();
}

std::string name_of(Dwarf_Die* die, DwarfScopes& scopes) {
  for (const unsigned key : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute attribute;
    const char* mangled = dwarf_formstring(dwarf_attr_integrate(die, key, &attribute));
    if (mangled != nullptr && *mangled != '\0') return demangle(mangled);
  }
  return scopes.name(die);
}

bool has_linkage_name(Dwarf_Die* die) {
  return dwarf_hasattr_integrate(die, DW_AT_linkage_name) ||
         dwarf_hasattr_integrate(die, DW_AT_MIPS_linkage_name);
}

// The symbol table knows better when DWARF leaves out the namespaces (C++, local functions) and
// when it has the internal name of what a program calls by a public one (__libc_malloc).
bool prefer_symbol(const std::string& symbol, Dwarf_Die* function, const std::string& name) {
  if (symbol.empty() || has_linkage_name(function)) return false;
  if (symbol.starts_with("_Z") || symbol.starts_with("_R")) return true;
  return name.starts_with('_') && symbol[0] != '_';
}

// Appends the inlined functions below `die` that hold `address`, outermost first.
void find_inlined(Dwarf_Die* die, uint64_t address, std::vector<Dwarf_Die>& chain, int depth) {
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(die, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
        tag != DW_TAG_try_block && tag != DW_TAG_catch_block) {
      continue;
    }
    if (dwarf_haspc(&child, address) > 0) {
      if (tag == DW_TAG_inlined_subroutine) chain.push_back(child);
      find_inlined(&child, address, chain, depth + 1);
      return;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace

DwarfIndex::DwarfIndex(Dwarf* dwarf) : dwarf_(dwarf) {
  Dwarf_CU* cu = nullptr;
  Dwarf_Die unit;
  Dwarf_Die split;
  uint8_t type = 0;
  while (dwarf_get_units(dwarf, cu, &cu, nullptr, &type, &unit, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    const bool is_split = type == DW_UT_skeleton && split.addr != nullptr;
    const auto number = static_cast<uint32_t>(units_.size());
    units_.push_back({unit, is_split ? split : unit, false, {}});
    for_each_range(&unit, [&](uint64_t begin, uint64_t end) {
      ranges_.push_back({begin, end, number});
    });
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const UnitRange& a, const UnitRange& b) { return a.begin < b.begin; });
}

DwarfIndex::Unit* DwarfIndex::unit_at(uint64_t address) {
  if (const UnitRange* range = find_range(ranges_, address)) return &units_[range->unit];
  // A unit that does not say what it covers may still be listed in .debug_aranges.
  Dwarf_Die die;
  if (dwarf_addrdie(dwarf_, address, &die) == nullptr) return nullptr;
  for (Unit& unit : units_) {
    if (unit.lines.addr == die.addr) return &unit;
  }
  return nullptr;
}

void DwarfIndex::walk(Unit& unit, Dwarf_Die* die, int depth) {
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(die, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        for_each_range(&child, [&](uint64_t begin, uint64_t end) {
          unit.ranges.push_back({begin, end, child});
        });
        walk(unit, &child, depth + 1);
        break;
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_enumeration_type:
      case DW_TAG_lexical_block:
        walk(unit, &child, depth + 1);
        break;
      default:
        break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

Dwarf_Die* DwarfIndex::function_at(Unit& unit, uint64_t address) {
  if (!unit.walked) {
    unit.walked = true;
    walk(unit, &unit.functions, 0);
    std::stable_sort(unit.ranges.begin(), unit.ranges.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
  }
  auto* range = find_range(unit.ranges, address);
  return range == nullptr ? nullptr : &range->die;
}

SourceFrames DwarfIndex::frames(uint64_t address, const std::string& symbol) {
  Unit* unit = unit_at(address);
  if (unit == nullptr) return {};
  Spot where = line_at(&unit->lines, address);
  Dwarf_Die* function = function_at(*unit, address);
  if (function == nullptr) {
    if (where.source.empty()) return {};
    return {{demangle(symbol.c_str()), where.source, where.path}};
  }
  std::vector<Dwarf_Die> chain;
  find_inlined(function, address, chain, 0);

  SourceFrames frames;
  while (!chain.empty()) {
    frames.push_back(
        {name_of(&chain.back(), scopes_), std::move(where.source), std::move(where.path)});
    where = call_site(&unit->functions, &chain.back());
    chain.pop_back();
  }
  // The symbol of a local function has all its scopes.
  const char* plain = dwarf_diename(function);
  std::string name = prefer_symbol(symbol, function, plain == nullptr ? "" : plain)
                         ? demangle(symbol.c_str())
                         : name_of(function, scopes_);
  frames.push_back({std::move(name), std::move(where.source), std::move(where.path)});
  return frames;
}

}  // namespace mtrace::symbols
