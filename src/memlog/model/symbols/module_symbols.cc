#include "model/symbols/module_symbols.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/symbols/dwarf_index.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"
#include "util/file.h"

namespace mtrace::symbols {

// The function symbols of a module, sorted by address. libdwfl's own lookup walks the whole table
// for each address, which takes seconds for libraries with 50,000 symbols.
class SymbolTable {
 public:
  // Reads .symtab or .dynsym, with .gnu_debugdata, as libdwfl finds them. `module` owns the names
  // and must outlive this.
  explicit SymbolTable(Dwfl_Module* module);

  // Returns the mangled name of the function that contains `address`, without its version
  // (@GLIBC_2.2.5); empty: none. Of several names for one address it prefers the public one: global
  // before weak before local, then names without leading underscores.
  std::string find(uint64_t address) const;

 private:
  struct Symbol {
    uint64_t begin;
    uint64_t end;
    const char* name;
    int rank;  // lower is better
  };
  std::vector<Symbol> symbols_;
};

namespace {

constexpr int kUnsized = 1000;

int rank_of(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  int rank = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 100 : 200;
  rank += static_cast<int>(std::min<size_t>(std::strspn(name, "_"), 9)) * 10;
  return symbol.st_size == 0 ? rank + kUnsized : rank;
}

bool names_code(const GElf_Sym& symbol) {
  switch (GELF_ST_TYPE(symbol.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
    case STT_NOTYPE:  // labels of assembly
      return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
    default:
      return false;
  }
}

// "memcpy@@GLIBC_2.14" -> "memcpy"
std::string_view without_version(const char* name) {
  const char* version = std::strchr(name + 1, '@');
  return version == nullptr ? std::string_view(name)
                            : std::string_view(name, static_cast<size_t>(version - name));
}

// Where the section that holds `address` ends: a label without size reaches so far at most.
// libdwfl's own search for a section opens the debugging information.
uint64_t section_end(Dwfl_Module* module, GElf_Addr address, bool* is_code) {
  GElf_Addr bias = 0;
  Elf* const elf = dwfl_module_getelf(module, &bias);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if ((header.sh_flags & (SHF_ALLOC | SHF_TLS)) != SHF_ALLOC) continue;
    if (address - bias - header.sh_addr >= header.sh_size) continue;
    *is_code = (header.sh_flags & SHF_EXECINSTR) != 0;
    return header.sh_addr + header.sh_size + bias;
  }
  return address + 1;
}

}  // namespace

SymbolTable::SymbolTable(Dwfl_Module* module) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word index = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, &index, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || !names_code(symbol)) continue;
    uint64_t end = 0;
    if (__builtin_add_overflow(address, symbol.st_size, &end)) continue;
    symbols_.push_back({address, end, name, rank_of(symbol, name)});
  }
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.rank != b.rank) return a.rank < b.rank;
    const size_t a_size = std::strlen(a.name);
    const size_t b_size = std::strlen(b.name);
    return a_size != b_size ? a_size < b_size : std::strcmp(a.name, b.name) < 0;
  });
  // Labels without size reach to the next symbol, within their section.
  uint64_t next = UINT64_MAX;
  uint64_t known_begin = 1;  // the section looked at last
  uint64_t known_end = 0;
  bool known_code = false;
  for (size_t i = symbols_.size(); i-- > 0;) {
    Symbol& symbol = symbols_[i];
    if (symbol.end == symbol.begin) {
      if (symbol.begin < known_begin || symbol.begin >= known_end) {
        known_code = false;
        known_begin = symbol.begin;
        known_end = section_end(module, symbol.begin, &known_code);
      }
      if (known_code) symbol.end = std::min(next, known_end);
    }
    if (i > 0 && symbols_[i - 1].begin != symbol.begin) next = symbol.begin;
  }
  // Nor does a label within a function reach beyond that function.
  uint64_t function_end = 0;
  for (Symbol& symbol : symbols_) {
    if (symbol.rank < kUnsized) {
      function_end = std::max(function_end, symbol.end);
    } else if (symbol.begin < function_end) {
      symbol.end = std::min(symbol.end, function_end);
    }
  }
}

std::string SymbolTable::find(uint64_t address) const {
  // Functions may lie inside others (labels, cold parts): the nearest one that reaches so far.
  constexpr int kSteps = 64;
  auto after =
      std::upper_bound(symbols_.begin(), symbols_.end(), address,
                       [](uint64_t value, const Symbol& symbol) { return value < symbol.begin; });
  const Symbol* best = nullptr;
  for (int step = 0; step < kSteps && after != symbols_.begin(); ++step) {
    --after;
    if (best != nullptr && after->begin != best->begin && best->rank < kUnsized) break;
    if (address >= after->end) continue;
    const bool better = best == nullptr || (best->rank >= kUnsized && after->rank < kUnsized) ||
                        (after->begin == best->begin && after->rank <= best->rank);
    if (better) best = &*after;
  }
  return best == nullptr ? std::string() : std::string(without_version(best->name));
}

namespace {

std::string absolute(const std::string& directory) {
  char* real = ::realpath(directory.c_str(), nullptr);
  std::string result = real == nullptr ? directory : real;
  std::free(real);
  return result;
}

// Directories with separate debug files, best first.
std::vector<std::string> debug_directories(const SearchPath& where) {
  std::vector<std::string> directories;
  for (const std::string& directory : where.symbols) directories.push_back(absolute(directory));
  if (!where.sysroot.empty()) directories.push_back(absolute(where.sysroot) + kSystemDebug);
  directories.emplace_back(kSystemDebug);
  return directories;
}

// In libdwfl's syntax: "+" checks the CRC of what a debuglink names, the empty element is the
// directory of the file itself.
std::string debuginfo_path(const std::vector<std::string>& directories) {
  std::string path = "+:.debug";
  for (const std::string& directory : directories) path += ':' + directory;
  return path;
}

bool has_servers() {
  const char* servers = std::getenv("DEBUGINFOD_URLS");
  return servers != nullptr && *servers != '\0';
}

// Returns whether one of the directories has a file that the debuglink `link` of `file` may mean;
// without a debuglink it would be `file`.debug. libdwfl looks beside `file`, in .debug there, and
// below each of `directories` with as much of the path of `file` as there is.
bool has_linked_file(const std::string& file, const char* link,
                     const std::vector<std::string>& directories) {
  const size_t end = file.rfind('/') + 1;
  const std::string directory = file.substr(0, end);
  const std::string name = link != nullptr ? link : file.substr(end) + ".debug";
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  if (exists(directory + name) || exists(directory + ".debug/" + name)) return true;
  for (const std::string& place : directories) {
    for (size_t at = 0; at != std::string::npos; at = directory.find('/', at + 1)) {
      if (exists(place + '/' + directory.substr(at) + '/' + name)) return true;
    }
  }
  return false;
}

// As dwfl_standard_find_debuginfo(). That one loads libdebuginfod and some 30 libraries with it for
// each module without debugging information, also where there is no server to ask: most of the time
// that such a module takes. `data` points to the directories. `file` is null where the file that
// several debug files share (.gnu_debugaltlink) is wanted.
int find_debuginfo(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base,
                   const char* file, const char* link, GElf_Word crc, char** found) {
  const int descriptor =
      dwfl_build_id_find_debuginfo(module, data, name, base, file, link, crc, found);
  if (descriptor >= 0) return descriptor;
  const auto* directories = static_cast<const std::vector<std::string>*>(*data);
  if (file != nullptr && directories != nullptr && !has_servers() &&
      !has_linked_file(file, link, *directories)) {
    return -1;
  }
  return dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, found);
}

// glibc's frames have no lines. Every stack ends in one, no leak is in its sources, and to inflate
// its debugging information, which valgrind brings along, takes longer than all else of a small
// report.
constexpr std::string_view kGlibc = "/libc.so.6";

}  // namespace

struct ModuleSymbols::State {
  std::vector<std::string> directories;
  std::string debuginfo_path;
  char* debuginfo_path_pointer = nullptr;
  Dwfl_Callbacks callbacks = {};
  Dwfl* session = nullptr;
  Dwfl_Module* module = nullptr;
  Finding finding = Finding::kMissing;
  GElf_Addr symbol_bias = 0;
  Dwarf_Addr debug_bias = 0;
  std::optional<SymbolTable> symbols;
  std::optional<DwarfIndex> dwarf;
  bool looked_for_dwarf = false;

  ~State() {
    dwarf.reset();
    symbols.reset();
    if (session != nullptr) dwfl_end(session);
  }

  State(const SearchPath& where, const std::string& path);
  void find(const SearchPath& where, const std::string& build_id, ElfFile own);
  ElfFile find_file(const SearchPath& where, const std::string& build_id, ElfFile own);
  ElfFile fetch(const std::string& build_id);
  void open(ElfFile file);

  std::string path;
};

// The module itself (`own`) if it is still the one that ran, else a debug file of the same build.
ElfFile ModuleSymbols::State::find_file(const SearchPath& where, const std::string& build_id,
                                        ElfFile own) {
  finding = Finding::kMissing;
  for (const std::string& directory : where.symbols) {
    if (!build_id.empty()) break;
    ElfFile packed = ElfFile::open(directory + path);
    if (!packed.valid() || !packed.build_id().empty()) continue;
    finding = Finding::kFound;
    return packed;
  }
  ElfFile file = std::move(own);
  if (file.valid()) {
    if (build_id.empty() || file.build_id() == build_id) {
      finding = Finding::kFound;
      return file;
    }
    finding = Finding::kChanged;
  }
  if (build_id.empty()) return {};
  for (const std::string& directory : debug_directories(where)) {
    for (const char* suffix : {"", ".debug"}) {
      file = ElfFile::open(directory + build_id_path(build_id) + suffix);
      if (file.valid() && file.build_id() == build_id) {
        finding = Finding::kFound;
        return file;
      }
    }
  }
  file = fetch(build_id);
  if (file.valid()) finding = Finding::kFound;
  return file;
}

// From the debuginfod servers that the environment names; libdwfl asks none otherwise.
ElfFile ModuleSymbols::State::fetch(const std::string& build_id) {
  if (!has_servers()) return {};
  Dwfl* asking = dwfl_begin(&callbacks);
  if (asking == nullptr) return {};
  ElfFile file;
  Dwfl_Module* unknown = dwfl_report_module(asking, "module", 0, UINT64_MAX);
  const auto* bytes = reinterpret_cast<const unsigned char*>(build_id.data());
  if (unknown != nullptr && dwfl_module_report_build_id(unknown, bytes, build_id.size(), 0) == 0 &&
      dwfl_report_end(asking, nullptr, nullptr) == 0) {
    char* name = nullptr;
    Elf* elf = nullptr;
    const int descriptor = dwfl_build_id_find_elf(unknown, nullptr, "module", 0, &name, &elf);
    if (elf != nullptr) elf_end(elf);
    if (descriptor >= 0) file = ElfFile::adopt(descriptor);
    std::free(name);
  }
  dwfl_end(asking);
  return file;
}

void ModuleSymbols::State::open(ElfFile file) {
  session = dwfl_begin(&callbacks);
  if (session == nullptr) return;
  const std::string name = file.path().empty() ? path : file.path();
  // At bias 0: the addresses of a memlog are the ELF file's own.
  const int descriptor = file.release();
  module = dwfl_report_elf(session, name.c_str(), name.c_str(), descriptor, 0, true);
  if (module == nullptr || dwfl_report_end(session, nullptr, nullptr) != 0 ||
      dwfl_module_getelf(module, &symbol_bias) == nullptr) {
    finding = Finding::kMissing;
    module = nullptr;
    return;
  }
  void** data = nullptr;
  dwfl_module_info(module, &data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  *data = &directories;
  symbols.emplace(module);
}

ModuleSymbols::State::State(const SearchPath& where, const std::string& module_path)
    : directories(debug_directories(where)),
      debuginfo_path(symbols::debuginfo_path(directories)),
      debuginfo_path_pointer(debuginfo_path.data()),
      path(module_path) {
  callbacks.find_elf = dwfl_build_id_find_elf;
  callbacks.find_debuginfo = find_debuginfo;
  callbacks.section_address = dwfl_offline_section_address;
  callbacks.debuginfo_path = &debuginfo_path_pointer;
}

void ModuleSymbols::State::find(const SearchPath& where, const std::string& build_id, ElfFile own) {
  ElfFile file = find_file(where, build_id, std::move(own));
  if (file.valid()) open(std::move(file));
}

ModuleSymbols::ModuleSymbols(const SearchPath& where, const std::string& path,
                             const std::string& build_id)
    : state_(std::make_unique<State>(where, path)) {
  state_->find(where, build_id,
               path == format::kVdsoPath ? ElfFile::vdso() : ElfFile::open(where.sysroot + path));
}

ModuleSymbols::ModuleSymbols(const SearchPath& where, const std::string& path, int descriptor)
    : state_(std::make_unique<State>(where, path)) {
  ElfFile own = ElfFile::adopt(descriptor, where.sysroot + path);
  const std::string build_id = own.build_id();
  if (own.valid()) state_->find(where, build_id, std::move(own));
}

ModuleSymbols::~ModuleSymbols() = default;

Finding ModuleSymbols::finding() const { return state_->finding; }

Dwfl_Module* ModuleSymbols::module() const { return state_->module; }

SourceFrames ModuleSymbols::frames(uint64_t address) {
  if (state_->module == nullptr) return {};
  const std::string symbol = state_->symbols->find(address + state_->symbol_bias);
  SourceFrames frames;
  if (!std::exchange(state_->looked_for_dwarf, true) && !state_->path.ends_with(kGlibc)) {
    Dwarf* debug = dwfl_module_getdwarf(state_->module, &state_->debug_bias);
    if (debug != nullptr) state_->dwarf.emplace(debug);
  }
  if (state_->dwarf) {
    frames = state_->dwarf->frames(address + state_->symbol_bias - state_->debug_bias, symbol);
  }
  if (frames.empty() && !symbol.empty()) frames.push_back({demangle(symbol.c_str()), "", ""});
  return frames;
}

std::vector<ModuleSymbols::File> ModuleSymbols::files() const {
  std::vector<File> files;
  if (state_->module == nullptr) return files;
  const auto add = [&](Elf* elf, const std::string& name, bool whole) {
    size_t size = 0;
    const char* bytes = elf != nullptr ? elf_rawfile(elf, &size) : nullptr;
    if (bytes != nullptr) files.push_back({name, {bytes, size}, whole});
  };
  GElf_Addr bias = 0;
  Elf* const main = dwfl_module_getelf(state_->module, &bias);
  const std::string id = build_id_of(main);
  const std::string name = id.empty() ? state_->path : build_id_path(id);
  add(main, name, false);
  Dwarf* const dwarf = dwfl_module_getdwarf(state_->module, &bias);
  Elf* const debug = dwarf != nullptr ? dwarf_getelf(dwarf) : nullptr;
  if (debug != nullptr && debug != main) {
    GElf_Word check = 0;
    const char* const link = id.empty() ? dwelf_elf_gnu_debuglink(main, &check) : nullptr;
    const std::string beside = name.substr(0, name.rfind('/') + 1);
    add(debug, link != nullptr ? beside + util::base_name(link) : name + ".debug", id.empty());
  }
  Dwarf* const shared = dwarf != nullptr ? dwarf_getalt(dwarf) : nullptr;
  Elf* const shared_elf = shared != nullptr ? dwarf_getelf(shared) : nullptr;
  const std::string shared_id = shared_elf != nullptr ? build_id_of(shared_elf) : "";
  if (!shared_id.empty()) add(shared_elf, build_id_path(shared_id) + ".debug", false);
  return files;
}

namespace {

constexpr unsigned kCopySeconds = 120;
constexpr uint64_t kAlignment = 16;

// What names are read from. Any other section has only its header in the copy.
bool is_kept(const Elf64_Shdr& section, std::string_view name) {
  constexpr Elf64_Word kTypes[] = {SHT_SYMTAB, SHT_DYNSYM,     SHT_STRTAB,    SHT_SYMTAB_SHNDX,
                                   SHT_NOTE,   SHT_GNU_versym, SHT_GNU_verdef};
  return std::ranges::find(kTypes, section.sh_type) != std::end(kTypes) ||
         (section.sh_type != SHT_NOBITS &&
          (name.starts_with(".debug_") || name.starts_with(".zdebug_") ||
           name.starts_with(".gnu_debug")));
}

bool lies_within(std::string_view file, uint64_t offset, uint64_t size) {
  return offset <= file.size() && size <= file.size() - offset;
}

template <typename T>
bool read_table(std::string_view file, uint64_t offset, uint64_t count, std::vector<T>& to) {
  if (count > file.size() / sizeof(T) || !lies_within(file, offset, count * sizeof(T)))
    return false;
  to.resize(count);
  if (count != 0) std::memcpy(to.data(), file.data() + offset, count * sizeof(T));
  return true;
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& table) {
  return {reinterpret_cast<const char*>(table.data()), table.size() * sizeof(T)};
}

// Writes a copy of a 64-bit ELF file that has its symbol tables, notes and debugging information,
// and of its code and data only where these were. Returns false, and writes nothing, for a file
// that is none, or is damaged.
bool copy_without_code(std::string_view file, std::ostream& out) {
  Elf64_Ehdr header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections(1);
  const bool known =
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
      header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_shentsize == sizeof(Elf64_Shdr) &&
      read_table(file, header.e_shoff, 1, sections);
  if (!known) return false;
  // A file of many sections has their number, and that of the names, in the first one's header.
  const uint64_t count = header.e_shnum != 0 ? header.e_shnum : sections[0].sh_size;
  const uint64_t names =
      header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : uint64_t{sections[0].sh_link};
  if (!read_table(file, header.e_shoff, count, sections) || names >= sections.size() ||
      !read_table(file, header.e_phoff, header.e_phnum, segments)) {
    return false;
  }
  const Elf64_Shdr name_table = sections[names];
  if (!lies_within(file, name_table.sh_offset, name_table.sh_size)) return false;
  const std::string_view all_names = file.substr(name_table.sh_offset, name_table.sh_size);
  header.e_phoff = segments.empty() ? 0 : sizeof header;
  for (Elf64_Phdr& segment : segments) segment.p_filesz = 0;
  uint64_t end = sizeof header + segments.size() * sizeof(Elf64_Phdr);
  const auto align = [&end] { end = (end + kAlignment - 1) / kAlignment * kAlignment; };
  std::vector<std::string_view> contents;
  for (size_t i = 1; i < sections.size(); ++i) {
    Elf64_Shdr& section = sections[i];
    const std::string_view name =
        all_names.substr(std::min<size_t>(section.sh_name, all_names.size()));
    align();
    if (is_kept(section, name)) {
      if (!lies_within(file, section.sh_offset, section.sh_size)) return false;
      contents.push_back(file.substr(section.sh_offset, section.sh_size));
    } else {
      contents.emplace_back();
      if (section.sh_type != SHT_NULL) section.sh_type = SHT_NOBITS;
    }
    section.sh_offset = end;
    end += contents.back().size();
  }
  align();
  header.e_shoff = end;

  uint64_t written = 0;
  const auto put = [&](std::string_view bytes) {
    out << bytes;
    written += bytes.size();
  };
  const auto pad_to = [&](uint64_t offset) { put(std::string(offset - written, '\0')); };
  put({reinterpret_cast<const char*>(&header), sizeof header});
  put(bytes_of(segments));
  for (size_t i = 1; i < sections.size(); ++i) {
    pad_to(sections[i].sh_offset);
    put(contents[i - 1]);
  }
  pad_to(header.e_shoff);
  put(bytes_of(sections));
  return true;
}

}  // namespace

bool copy_symbols(const SearchPath& where, const std::string& path, const std::string& build_id,
                  bool binaries, const std::string& directory) {
  namespace fs = std::filesystem;
  const auto work = [&] {
    std::string copied;
    const ModuleSymbols module(where, path, build_id);
    for (const ModuleSymbols::File& file : module.files()) {
      // A path in data from elsewhere may have "..".
      if (!file.name.starts_with('/')) continue;
      const fs::path to = directory + fs::path(file.name).lexically_normal().native();
      fs::create_directories(to.parent_path());
      std::ofstream out;
      out.exceptions(std::ios::badbit | std::ios::failbit);
      out.open(to, std::ios::binary);
      if (binaries || file.whole) {
        out << file.content;
      } else if (!copy_without_code(file.content, out)) {
        fs::remove(to);
        continue;
      }
      out.close();
      copied = "some";
    }
    return copied;
  };
  return run_isolated(work, kCopySeconds).value_or("") != "";
}

}  // namespace mtrace::symbols
