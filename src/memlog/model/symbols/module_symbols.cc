#include "model/symbols/module_symbols.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "format/memlog.h"
#include "model/symbols/demangle.h"
#include "model/symbols/dwarf_index.h"
#include "model/symbols/elf_file.h"
#include "model/symbols/symbol_table.h"
#include "util/file.h"

namespace mtrace::symbols {
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
  Dwarf* debug = dwfl_module_getdwarf(module, &debug_bias);
  if (debug != nullptr) dwarf.emplace(debug);
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
  if (state_->dwarf) {
    frames = state_->dwarf->frames(address + state_->symbol_bias - state_->debug_bias, symbol);
  }
  if (frames.empty() && !symbol.empty()) frames.push_back({demangle(symbol.c_str()), "", ""});
  return frames;
}

std::vector<uint64_t> ModuleSymbols::addresses(const std::string& symbol) {
  if (state_->module == nullptr) return {};
  std::vector<uint64_t> found = state_->symbols->addresses(symbol);
  for (uint64_t& address : found) address -= state_->symbol_bias;
  return found;
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

}  // namespace mtrace::symbols
