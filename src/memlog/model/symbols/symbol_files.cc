#include "model/symbols/symbol_files.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::symbols {
namespace {

constexpr unsigned kCopySeconds = 120;
constexpr uint64_t kAlignment = 16;

// What names are read from. Any other section has only its header in the copy.
bool is_kept(const Elf64_Shdr& section, std::string_view name) {
  switch (section.sh_type) {
    case SHT_SYMTAB:
    case SHT_DYNSYM:
    case SHT_STRTAB:
    case SHT_SYMTAB_SHNDX:
    case SHT_NOTE:
    case SHT_GNU_versym:
    case SHT_GNU_verdef:
      return true;
    case SHT_NOBITS:
      return false;
    default:
      return name.starts_with(".debug_") || name.starts_with(".zdebug_") ||
             name.starts_with(".gnu_debug");
  }
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

}  // namespace

bool copy_without_code(std::string_view file, const std::function<void(std::string_view)>& sink) {
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
    sink(bytes);
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

std::vector<SymbolFile> copy_symbols(const SearchPath& where, const std::string& path,
                                     const std::string& build_id, bool binaries, int descriptor) {
  const auto work = [&] {
    std::string list;
    const ModuleSymbols module(where, path, build_id);
    for (const ModuleSymbols::File& file : module.files()) {
      uint64_t size = 0;
      const auto put = [&](std::string_view bytes) {
        size += bytes.size();
        if (!util::write_all(descriptor, bytes)) throw std::runtime_error("no room");
      };
      if (binaries || file.whole) {
        put(file.content);
      } else if (!copy_without_code(file.content, put)) {
        continue;
      }
      list += fmt::format("{} {}\n", size, util::escaped(file.name, ""));
    }
    return list;
  };
  if (::ftruncate(descriptor, 0) != 0 || ::lseek(descriptor, 0, SEEK_SET) != 0) return {};
  const std::string list = run_isolated(work, kCopySeconds, descriptor).value_or("");
  std::vector<SymbolFile> files;
  for (const std::string_view line : util::split(list, '\n')) {
    const size_t blank = line.find(' ');
    if (blank == line.npos) continue;
    files.push_back({util::unescaped(line.substr(blank + 1)).value_or(""),
                     util::read_unsigned(line.substr(0, blank)).value_or(0)});
  }
  return files;
}

void add_made_symbols(const std::string& path, const std::string& build_id,
                      std::map<uint64_t, std::string> names) {
  if (const ElfFile before = ElfFile::open(path); before.valid()) {
    const OpenElf elf = open_elf(before.descriptor());
    any_symbol(elf.get(), SHT_SYMTAB, [&](const GElf_Sym& symbol, const char* name) {
      names.try_emplace(symbol.st_value, name);
      return false;
    });
  }
  constexpr char kSectionNames[] = "\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab";
  constexpr uint64_t kPage = 4096;
  std::vector<Elf64_Sym> symbols(1);
  std::string texts(1, '\0');
  for (const auto& [address, name] : names) {
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<Elf64_Word>(texts.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 2;
    symbol.st_value = address;
    symbol.st_size = 1;
    symbols.push_back(symbol);
    texts += name + '\0';
  }
  const uint64_t end = names.empty() ? 1 : names.rbegin()->first + 1;
  Elf64_Nhdr note = {};
  note.n_namesz = 4;
  note.n_descsz = static_cast<Elf64_Word>(build_id.size());
  note.n_type = NT_GNU_BUILD_ID;
  std::string notes;
  if (!build_id.empty()) {
    notes.assign(reinterpret_cast<const char*>(&note), sizeof note);
    notes.append("GNU\0", 4).append(build_id);
    notes.resize((notes.size() + 3) / 4 * 4, '\0');
  }
  const auto section_name = [&](std::string_view name) {
    return static_cast<Elf64_Word>(
        std::string_view(kSectionNames, sizeof kSectionNames).find(name));
  };
  std::vector<Elf64_Shdr> sections(6);
  std::string body;
  const uint64_t begin = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  const auto put = [&](size_t index, std::string_view name, Elf64_Word type,
                       std::string_view bytes) {
    body.resize((body.size() + 7) / 8 * 8, '\0');
    Elf64_Shdr& section = sections[index];
    section.sh_name = section_name(name);
    section.sh_type = type;
    section.sh_offset = begin + body.size();
    section.sh_size = bytes.size();
    section.sh_addralign = 8;
    body += bytes;
  };
  put(1, ".note", SHT_NOTE, notes);
  sections[1].sh_addralign = 4;
  put(2, ".text", SHT_NOBITS, "");
  sections[2].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  sections[2].sh_size = end;
  put(3, ".symtab", SHT_SYMTAB, bytes_of(symbols));
  sections[3].sh_link = 4;
  sections[3].sh_info = 1;
  sections[3].sh_entsize = sizeof(Elf64_Sym);
  put(4, ".strtab", SHT_STRTAB, texts);
  put(5, ".shstrtab", SHT_STRTAB, {kSectionNames, sizeof kSectionNames});
  body.resize((body.size() + 7) / 8 * 8, '\0');

  Elf64_Phdr segment = {};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_memsz = (end + kPage - 1) / kPage * kPage;
  segment.p_align = kPage;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;  // names do not depend on it
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof segment;
  header.e_phnum = 1;
  header.e_shoff = begin + body.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = 5;
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  util::replace_file(path, file.append(body).append(bytes_of(sections)));
}

}  // namespace mtrace::symbols
