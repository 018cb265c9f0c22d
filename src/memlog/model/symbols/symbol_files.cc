#include "model/symbols/symbol_files.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "model/symbols/worker.h"

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
