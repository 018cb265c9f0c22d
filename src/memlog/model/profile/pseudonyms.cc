#include "model/profile/pseudonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "format/calls.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "format/option_kind.h"
#include "model/profile/regions.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

// Libraries that distributions ship, by the beginning of their names.
constexpr char kLibraries[] =
    "(ld-linux[a-z0-9_-]*|linux-vdso|lib("
    "c|m|dl|rt|pthread|resolv|util|nsl|nss_[a-z]+|crypt|stdc\\+\\+|gcc_s|gomp|atomic|gfortran|"
    "quadmath|itm|[alt]san|ubsan|hwasan|c\\+\\+|c\\+\\+abi|unwind[a-z0-9_-]*|supc\\+\\+|"
    "jemalloc|tcmalloc[a-z_]*|mimalloc[a-z-]*|mtrace|"
    "python3[0-9.]*|perl|ruby[0-9.-]*|lua[0-9.]*|tcl[0-9.]*|"
    "z|zstd|lz4|lzma|bz2|brotli[a-z]+|snappy|ssl|crypto|gnutls|nettle|hogweed|gcrypt|gpg-error|"
    "glib-2\\.0|gobject-2\\.0|gio-2\\.0|gmodule-2\\.0|gthread-2\\.0|ffi|pcre[a-z0-9-]*|expat|xml2|"
    "xslt|yaml[a-z0-9-]*|json-c|jansson|curl[a-z-]*|nghttp2|ssh2?|idn2?|unistring|psl|uuid|"
    "sqlite3|pq|mariadb|db-[0-9.]+|gmp|mpfr|mpc|boost_[a-z0-9_]+|protobuf[a-z-]*|grpc[a-z+_]*|absl_"
    "[a-z_]+|"
    "fmt|spdlog|re2|icu[a-z0-9]+|elf|dw|bfd[a-z0-9.-]*|iberty|selinux|apparmor|cap|cap-ng|acl|attr|"
    "audit|pam[a-z_]*|systemd|udev|dbus-1|mount|blkid|readline|edit|ncurses[a-z]*|tinfo|"
    "X[a-zA-Z0-9]+|xcb[a-z0-9-]*|xkbcommon[a-z0-9-]*|wayland-[a-z]+|"
    "gtk-[0-9x11.-]+|gdk[a-z0-9_.-]+|atk[a-z0-9.-]*|pango[a-z0-9.-]*|cairo[a-z0-9.-]*|pixman-1|"
    "harfbuzz[a-z-]*|freetype|fontconfig|graphite2|png16|jpeg|turbojpeg|tiff|webp[a-z]*|gif|"
    "Qt[56][a-zA-Z0-9]+|GL[a-zA-Z0-9]*|EGL[a-z_]*|gbm|drm[a-z_]*|vulkan|LLVM[0-9.-]*|asound|pulse["
    "a-z-]*|"
    "jvm|java|blas|lapack|openblas[a-z0-9-]*|numa|event[a-z0-9_.-]*|uv|ev"
    "))[-.0-9]*\\.so[.0-9]*";
// Where they are installed, directly.
constexpr char kSystemPlaces[] =
    "(/usr)?/lib(32|64|x32)?/((x86_64|i386|aarch64|arm|riscv64|powerpc64le|s390x)-linux-gnu[a-z]*/"
    ")?";
// Python with its standard library.
constexpr char kPython[] =
    "(/usr)?/bin/python3[.0-9]*|/usr/(local/)?lib(64)?/python3[.0-9]*/"
    "((asyncio|collections|concurrent|ctypes|curses|dbm|email|encodings|futures|"
    "html|http|importlib|json|lib-dynload|logging|metadata|mime|multiprocessing|pathlib|re|"
    "resources|"
    "sqlite3|tomllib|unittest|urllib|wsgiref|xml|dom|etree|parsers|sax|xmlrpc|zoneinfo)/"
    ")*[A-Za-z_0-9]+(\\.py|"
    "\\.[a-z0-9_-]+\\.so)|<frozen "
    "(importlib\\._bootstrap|importlib\\._bootstrap_external|zipimport|"
    "runpy|os|site|codecs|io|abc)>";
constexpr char kPackages[] = "/(dist|site)-packages/";

constexpr char kDeleted[] = " (deleted)";

// What tells a kind of file and no more.
constexpr char kSuffixes[] =
    "(\\.(c|cc|cp|cpp|cxx|c\\+\\+|h|hh|hpp|hxx|inc|ipp|tcc|s|S|asm|py|pyx|rs|go|f|f90|d|m|mm|swift|"
    "zig|js|"
    "ts|rb|pl|lua|java|kt|jl|cs|exe|dll|a|jar|map|dump)|(\\.[a-z0-9_-]*linux-gnu)?\\.so[.0-9]*)$";

// What programs do not choose: where all begins, and what the views know as allocators.
constexpr std::array<std::string_view, 22> kFunctions = {
    "main",
    "_start",
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "free",
    "strdup",
    "strndup",
    "<module>",
    "<lambda>",
    "operator new(unsigned long)",
    "operator new[](unsigned long)",
    "operator new(unsigned long, std::align_val_t)",
    "operator new[](unsigned long, std::align_val_t)",
    "operator new(unsigned long, std::nothrow_t const&)",
    "operator new[](unsigned long, std::nothrow_t const&)"};

constexpr std::array<std::string_view, 12> kTriggers = {"signal",   "exit",   "api",   "request",
                                                        "peak",     "growth", "rss",   "recovered",
                                                        "snapshot", "events", "start", "attach"};

constexpr std::array<std::string_view, 6> kKinds = {
    "mmap", "munmap", format::kKindFailed, format::kKindControl, format::kKindUnknownFree, "heap"};

// Names of the C++ library. Names with an underscore at their begin are its own, too.
constexpr char kStdNames[] =
    "(std|__gnu_cxx)::((__cxx11|__1|__detail|__debug|__cxx1998|__parallel|_V2|pmr|chrono|"
    "filesystem|ranges|views|experimental|this_thread|execution|tr1|__exception_ptr|literals)::)*"
    "(_[a-zA-Z0-9_]*|"
    "accumulate|adjacent_find|advance|align_val_t|all_of|allocate_shared|allocator|"
    "allocator_traits|any|any_cast|any_of|apply|array|async|atomic|atomic_flag|auto_ptr|"
    "back_inserter|back_insert_iterator|bad_alloc|bad_function_call|bad_optional_access|"
    "bad_variant_access|barrier|basic_filebuf|basic_fstream|basic_ifstream|basic_ios|"
    "basic_iostream|basic_istream|basic_istringstream|basic_ofstream|basic_ostream|"
    "basic_ostringstream|basic_regex|basic_streambuf|basic_string|basic_stringbuf|"
    "basic_stringstream|basic_string_view|binary_search|bind|bit_cast|bitset|call_once|"
    "char_traits|clamp|codecvt|complex|condition_variable|condition_variable_any|"
    "construct_at|copy|copy_backward|copy_if|copy_n|count|count_if|counting_semaphore|"
    "ctype|cv_status|declval|default_delete|deque|destroy|destroy_at|directory_entry|"
    "directory_iterator|distance|div|duration|duration_cast|enable_shared_from_this|equal|"
    "equal_range|equal_to|error_category|error_code|error_condition|exception|"
    "exception_ptr|exchange|exclusive_scan|expected|fill|fill_n|find|find_if|find_if_not|"
    "flush|for_each|format|formatter|forward|forward_as_tuple|forward_list|front_inserter|"
    "from_chars|function|future|generate|get|getline|greater|hash|inclusive_scan|"
    "initializer_list|inner_product|inserter|insert_iterator|invoke|ios_base|iota|istream|"
    "istreambuf_iterator|istream_iterator|is_same|is_sorted|iterator_traits|jthread|latch|"
    "launch|less|less_equal|lexicographical_compare|list|locale|lock|lock_guard|"
    "logic_error|lower_bound|make_any|make_error_code|make_exception_ptr|make_heap|"
    "make_move_iterator|make_optional|make_pair|make_shared|make_tuple|make_unique|map|"
    "match_results|max|max_element|mem_fn|memory_resource|merge|messages|min|min_element|"
    "minmax|mismatch|money_get|money_put|monostate|move|move_iterator|multimap|multiplies|"
    "multiset|mutex|negate|new_handler|next|none_of|not_equal_to|nothrow_t|nth_element|"
    "nullopt_t|operator|nullptr_t|num_get|num_put|numeric_limits|numpunct|optional|ostream|"
    "ostreambuf_iterator|ostream_iterator|out_of_range|overflow_error|owner_less|"
    "packaged_task|pair|partial_sort|partial_sum|partition|path|piecewise_construct_t|plus|"
    "polymorphic_allocator|pop_heap|prev|priority_queue|promise|push_heap|queue|quoted|"
    "range_error|recursive_directory_iterator|recursive_mutex|reduce|ref|reference_wrapper|"
    "regex|regex_iterator|regex_match|regex_replace|regex_search|regex_token_iterator|"
    "regex_traits|remove|remove_if|replace|replace_if|reverse|reverse_iterator|rotate|"
    "runtime_error|scoped_lock|search|set|shared_future|shared_lock|shared_mutex|"
    "shared_ptr|shared_timed_mutex|shuffle|size|sort|source_location|span|stable_partition|"
    "stable_sort|stack|steady_clock|stod|stoi|stol|stop_source|stop_token|stoul|stoull|"
    "streambuf|string|string_view|stringstream|sub_match|swap|swap_ranges|system_clock|"
    "system_error|terminate|thread|tie|timed_mutex|time_get|time_point|time_put|to_address|"
    "to_chars|to_string|transform|transform_reduce|try_lock|tuple|tuple_cat|tuple_element|"
    "tuple_size|type_index|type_info|underflow_error|uninitialized_copy|"
    "uninitialized_copy_n|uninitialized_default_construct|uninitialized_fill|"
    "uninitialized_move|unique|unique_lock|unique_ptr|unordered_map|unordered_multimap|"
    "unordered_multiset|unordered_set|upper_bound|use_facet|valarray|variant|vector|visit|"
    "wbuffer_convert|weak_ptr|wstring|wstring_convert|wstring_view|new_allocator|"
    "malloc_allocator"
    ")(::[a-zA-Z0-9_~:]+)?";

// Words of C++ in the names of functions.
constexpr std::array<std::string_view, 42> kWords = {
    "void",      "bool",     "char",     "signed", "unsigned",  "short",    "int",
    "long",      "float",    "double",   "const",  "volatile",  "wchar_t",  "char8_t",
    "char16_t",  "char32_t", "__int128", "true",   "false",     "auto",     "decltype",
    "nullptr",   "operator", "lambda",   "clone",  "isra",      "part",     "cold",
    "constprop", "lto_priv", "abi",      "cxx11",  "abi:cxx11", "new",      "delete",
    "default",   "arg",      "typeinfo", "for",    "noexcept",  "restrict", "_GLOBAL__sub_I"};

template <typename List>
bool is_in(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':' || c == '$' || c == '~' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_of_std(std::string_view word) {
  static const re2::RE2 known(kStdNames);
  return (word.starts_with("std::") || word.starts_with("__gnu_cxx::")) &&
         re2::RE2::FullMatch(re2::StringPiece(word.data(), word.size()), known);
}

bool is_number(std::string_view word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789ul") == word.npos;
}

bool is_version(std::string_view word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789.") == word.npos;
}

constexpr std::array<std::string_view, 16> kOperators = {"()", "[]", "<<=", ">>=", "<=>", "->*",
                                                         "->", "<<", ">>",  "<=",  ">=",  "<",
                                                         ">",  "==", "!=",  "="};

}  // namespace

void Pseudonyms::keep(const std::string& regex) {
  auto pattern = std::make_unique<re2::RE2>(regex, re2::RE2::Quiet);
  if (!pattern->ok()) throw std::runtime_error(fmt::format("{}: {}", regex, pattern->error()));
  kept_.push_back(std::move(pattern));
}

bool Pseudonyms::keeps(std::string_view path) const {
  static const re2::RE2 known(fmt::format("{}{}|{}", kSystemPlaces, kLibraries, kPython));
  static const re2::RE2 packages(kPackages);
  if (path == format::kVdsoPath) return true;
  if (path.ends_with(kDeleted)) path.remove_suffix(sizeof kDeleted - 1);
  const re2::StringPiece text(path.data(), path.size());
  if (re2::RE2::FullMatch(text, known) && !re2::RE2::PartialMatch(text, packages)) return true;
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const auto& regex) { return re2::RE2::PartialMatch(text, *regex); });
}

bool Pseudonyms::is_known_library(std::string_view name) const {
  static const re2::RE2 known(kLibraries);
  return re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), known);
}

std::string Pseudonyms::of(char letter, std::string_view text) {
  if (text.empty()) return "";
  constexpr uint64_t kDigits = (uint64_t{1} << 48) - 1;
  std::string name = fmt::format(
      "{}_{:012x}", letter, util::keyed_hash(key_, fmt::format("{}{}", letter, text)) & kDigits);
  made_.try_emplace(name, text);
  return name;
}

std::string Pseudonyms::file(std::string_view name) {
  static const re2::RE2 suffixes(kSuffixes);
  std::string_view rest = name;
  if (rest.ends_with(kDeleted)) rest.remove_suffix(sizeof kDeleted - 1);
  re2::StringPiece suffix;
  if (!re2::RE2::PartialMatch(re2::StringPiece(rest.data(), rest.size()), suffixes, &suffix)) {
    suffix = {};
  }
  return of('p', rest.substr(0, rest.size() - suffix.size())) +
         std::string(suffix.data(), suffix.size()) + std::string(name.substr(rest.size()));
}

std::string Pseudonyms::path(std::string_view path) {
  if (keeps(path)) return std::string(path);
  std::string out;
  for (const std::string_view part : util::split(path, '/')) {
    out += file(part);
    out += '/';
  }
  out.pop_back();
  return out;
}

std::string Pseudonyms::source(std::string_view source) {
  const size_t colon = std::min(source.rfind(':'), source.size());
  const bool line = colon != source.size() && is_number(source.substr(colon + 1));
  return line ? path(source.substr(0, colon)) + std::string(source.substr(colon)) : path(source);
}

// Empty: it is not of the C++ library alone.
std::string Pseudonyms::std_name(std::string_view name) {
  // What a template is given may be the characters of a text.
  if (name.find("(char)") != name.npos || name.find('"') != name.npos) return "";
  std::string out;
  std::vector<bool> of_std = {false};  // the last name at each depth of brackets
  for (size_t at = 0; at < name.size();) {
    const char c = name[at];
    if (!is_word(c)) {
      if (c == '<' || c == '(' || c == '[' || c == '{') of_std.push_back(false);
      if ((c == '>' || c == ')' || c == ']' || c == '}') && of_std.size() > 1) of_std.pop_back();
      out += c;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < name.size() && is_word(name[end])) ++end;
    const std::string_view word = name.substr(at, end - at);
    at = end;
    const bool follows = word.starts_with("::");
    const bool kept =
        word == "::" ||
        (follows ? of_std.back() : is_of_std(word) || is_in(kWords, word) || is_number(word));
    if (!follows && !is_in(kWords, word) && !is_number(word)) of_std.back() = is_of_std(word);
    out += kept ? std::string(word) : (follows ? "::" : "") + of('t', word);
    if (!word.ends_with("operator")) continue;
    for (const std::string_view symbol : kOperators) {
      if (!name.substr(at).starts_with(symbol)) continue;
      out += symbol;
      at += symbol.size();
      break;
    }
  }
  // The last name outside of brackets is the function's, those before it are of its result.
  return of_std[0] ? out : "";
}

std::string Pseudonyms::function(std::string_view name) {
  if (is_in(kFunctions, name) || name == format::kUnknownFunction) return std::string(name);
  const std::string kept = std_name(name);
  return kept.empty() ? of('f', name) : kept;
}

std::string Pseudonyms::command(std::string_view command) {
  std::string out;
  for (const std::string_view word : util::split(command, ' ')) {
    const std::string plain = util::unescaped(word).value_or(std::string(word));
    // The program's name is that of its path.
    out += word == "''" ? "''" : out.empty() ? path(plain) : of('w', plain);
    out += ' ';
  }
  out.pop_back();
  return out;
}

std::string Pseudonyms::library(std::string_view value) {
  struct Known {
    std::string_view variable;
    format::OptionKind kind;
  };
  static constexpr Known kOptions[] = {
#define MTRACE_OPTION(member, variable, kind, ...) {variable, format::OptionKind::kind},
#include "format/options.def"
#undef MTRACE_OPTION
  };
  std::string out;
  for (const std::string_view word : util::split(value, ' ')) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals);
    const std::string_view setting = word.substr(std::min(equals + 1, word.size()));
    const auto* const option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                            [&](const Known& one) { return one.variable == key; });
    const bool text =
        option != std::end(kOptions) && (option->kind == format::OptionKind::kText ||
                                         option->kind == format::OptionKind::kPatterns);
    const bool plain = word == "mtrace" || is_version(word);
    if (key == "allocator") {
      out += "allocator=" + (is_known_library(setting) ? std::string(setting) : file(setting));
    } else if (option != std::end(kOptions)) {
      out += std::string(key) + '=' + (text ? of('w', setting) : std::string(setting));
    } else if (plain) {
      out += word;
    } else {
      continue;
    }
    out += ' ';
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string Pseudonyms::note(std::string_view note) {
  for (const char* known :
       {format::kNotCoveredBefore, format::kNotCoveredMalloc, format::kNotCoveredProgram,
        format::kNotCoveredPython, format::kPythonOnTrial, format::kNotCovered, format::kResident,
        "the process had exited normally", "process "}) {
    const std::string_view about = known;
    if (!note.starts_with(about)) continue;
    return fmt::format("{}{}{}", about, about.ends_with(' ') || about == note ? "" : " ",
                       of('n', note.substr(about.size())));
  }
  return of('n', note);
}

std::string Pseudonyms::label(std::string_view label) {
  static const re2::RE2 signal("SIG[A-Z]{2,6}([+-][0-9]+)?");
  if (re2::RE2::FullMatch(re2::StringPiece(label.data(), label.size()), signal)) {
    return std::string(label);
  }
  return of('l', label);
}

std::string Pseudonyms::kind(std::string_view kind) {
  if (kind.empty() || is_in(kKinds, kind)) return std::string(kind);
  std::string name = of('k', kind);
  name[1] = '-';  // a kind has no underscore
  return name;
}

std::string Pseudonyms::call(std::string_view call) {
  return is_in(format::kCallNames, call) ? std::string(call) : of('f', call);
}

std::string Pseudonyms::trigger(std::string_view trigger) {
  if (is_in(kTriggers, trigger)) return std::string(trigger);
  std::string name = of('w', trigger);
  name[1] = '-';  // as in kinds
  return name;
}

std::string Pseudonyms::region(std::string_view name) {
  return is_known_region(name) ? std::string(name) : path(name);
}

std::string Pseudonyms::boot_id(std::string_view id) {
  if (id.empty()) return "";
  const uint64_t high = util::keyed_hash(key_, fmt::format("boot 1 {}", id));
  const uint64_t low = util::keyed_hash(key_, fmt::format("boot 2 {}", id));
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

bool Pseudonyms::module(Module& module) {
  if (keeps(module.path)) return true;
  module.path = path(module.path);
  const std::string before = module.build_id;
  for (size_t at = 0; at < before.size(); at += 8) {
    const uint64_t word = util::keyed_hash(key_, fmt::format("build {} {}", at, before));
    for (size_t i = at; i < std::min(at + 8, before.size()); ++i) {
      module.build_id[i] = static_cast<char>(word >> (8 * (i - at)));
    }
  }
  return false;
}

uint64_t Pseudonyms::stack(uint64_t id) const {
  return util::keyed_hash(key_, fmt::format("stack {:x}", id));
}

}  // namespace mtrace::profile
