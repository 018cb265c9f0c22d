#include "model/symbols/dwarf_scopes.h"

#include <dwarf.h>

#include <cstdlib>
#include <memory>
#include <string_view>

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

}  // namespace mtrace::symbols
