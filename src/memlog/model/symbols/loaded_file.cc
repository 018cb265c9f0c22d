#include "model/symbols/loaded_file.h"

#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "model/symbols/elf_file.h"
#include "model/symbols/worker.h"
#include "util/machine.h"

namespace mtrace::symbols {
namespace {

void read_segments(Elf* elf, const GElf_Ehdr& header, size_t segments, uint64_t bias,
                   LoadedFile& file) {
  file.all.begin = UINT64_MAX;
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    const Extent extent = {bias + segment.p_vaddr, bias + segment.p_vaddr + segment.p_memsz};
    if (segment.p_type == PT_GNU_EH_FRAME) file.eh_frame_header = extent.begin;
    if (segment.p_type == PT_NOTE) file.marks.push_back({extent, segment.p_offset});
    if (segment.p_type != PT_LOAD) continue;
    file.all.begin = std::min(file.all.begin, extent.begin);
    file.all.end = std::max(file.all.end, extent.end);
    if ((segment.p_flags & PF_X) != 0) file.code.push_back(extent);
    file.segments.push_back({{extent.begin, extent.begin + segment.p_filesz}, segment.p_offset});
    const uint64_t headers = header.e_phoff + segments * header.e_phentsize;
    if (segment.p_offset == 0 && headers <= segment.p_filesz) {
      file.marks.push_back({{extent.begin, extent.begin + headers}, 0});
    }
  }
}

void read_functions(Elf* elf, uint64_t bias, LoadedFile& file) {
  any_dynamic_symbol(elf, [&](const GElf_Sym& symbol, const char* name) {
    const uint64_t begin = bias + symbol.st_value;
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC) {
      file.functions.push_back({name, {begin, begin + symbol.st_size}});
    }
    return false;
  });
}

// Calls bias_of(elf), which may give none.
template <typename BiasOf>
std::optional<LoadedFile> read_file(int descriptor, BiasOf&& bias_of) {
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(descriptor, ELF_C_READ, nullptr),
                                                     elf_end);
  GElf_Ehdr header;
  size_t segments = 0;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr ||
      header.e_machine != util::machine::kElfMachine || gelf_getclass(elf.get()) != ELFCLASS64 ||
      elf_getphdrnum(elf.get(), &segments) != 0) {
    return std::nullopt;
  }
  const std::optional<uint64_t> bias = bias_of(elf.get());
  if (!bias) return std::nullopt;
  LoadedFile file;
  file.bias = *bias;
  read_segments(elf.get(), header, segments, *bias, file);
  read_functions(elf.get(), *bias, file);
  return file;
}

}  // namespace

std::optional<LoadedFile> loaded_file(int descriptor, uint64_t map_address, uint64_t map_offset) {
  return read_file(descriptor, [&](Elf* elf) { return load_bias(elf, map_address, map_offset); });
}

std::optional<LoadedFile> loaded_file_at(int descriptor, uint64_t bias) {
  return read_file(descriptor, [&](Elf*) { return std::optional(bias); });
}
namespace {

constexpr unsigned kAllocatorSeconds = 20;

// The functions by which programs call them. jemalloc's have the prefix that it was built with.
bool is_of_allocator(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "_rjem_malloc", "je_malloc",      "tc_malloc", "TCMallocInternalMalloc",
      "mi_malloc",    "mi_heap_malloc", "rpmalloc",  "sn_malloc"};
  return name.ends_with("mallocx") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Programs name their loader; shared libraries do not.
bool is_program(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_INTERP) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string linked_allocator(int descriptor) {
  const OpenElf elf = open_elf(descriptor);
  if (elf == nullptr) return {};
  // Of several the shortest: malloc rather than mallocx.
  std::string found;
  any_symbol(elf.get(), SHT_SYMTAB, [&](const GElf_Sym& symbol, std::string_view name) {
    const bool better = found.empty() || name.size() < found.size();
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && is_of_allocator(name) && better) found = name;
    return false;
  });
  if (found.empty() || is_program(elf.get())) return found;
  const bool exported = any_dynamic_symbol(
      elf.get(), [&](const GElf_Sym&, std::string_view name) { return is_of_allocator(name); });
  return exported ? std::string() : found;
}

std::string uncovered_share(uint64_t resident, uint64_t live) {
  if (resident <= live) return {};
  const uint64_t other = resident - live;
  return fmt::format("; of {} resident bytes {} ({:.1f}%) are not malloc's", resident, other,
                     100.0 * static_cast<double>(other) / static_cast<double>(resident));
}

std::string linked_allocator_of(int descriptor) {
  if (descriptor < 0) return {};
  const auto found =
      run_isolated([&] { return linked_allocator(descriptor); }, kAllocatorSeconds, descriptor);
  ::close(descriptor);
  return found.value_or("");
}

}  // namespace mtrace::symbols
