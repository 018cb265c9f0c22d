#include "model/symbols/core_file.h"

#include <gelf.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>

#include "model/symbols/elf_file.h"
#include "util/machine.h"

namespace mtrace::symbols {
namespace {

// Appends the words of a note, or of what it holds from `offset` on.
void append_words(std::string_view bytes, std::vector<uint64_t>& words) {
  const size_t count = bytes.size() / sizeof words[0];
  const size_t before = words.size();
  words.resize(before + count);
  std::memcpy(words.data() + before, bytes.data(), count * sizeof words[0]);
}

// Reads the notes of a core file in their order: those of a thread follow its NT_PRSTATUS.
class Notes {
 public:
  explicit Notes(CoreContents& core) : core_(core) {}

  void take(uint32_t type, std::string_view name, std::string_view bytes) {
    if (name == "CORE" && type == NT_PRSTATUS) return take_thread(bytes);
    if (name == "CORE" && type == NT_PRPSINFO) return take_process(bytes);
    if (name == "CORE" && type == NT_FILE) return take_files(bytes);
    if (core_.threads.empty()) return;
    ThreadRegisters& thread = core_.threads.back();
    const bool vectors = (name == "CORE" && type == NT_FPREGSET) ||
                         (name == "LINUX" && type == util::machine::kVectorSet);
    if (vectors) append_words(bytes, thread.words);
    if (name == "LINUX" && type == util::machine::kThreadPointerSet &&
        bytes.size() >= sizeof thread.thread_pointer) {
      std::memcpy(&thread.thread_pointer, bytes.data(), sizeof thread.thread_pointer);
    }
  }

 private:
  void take_thread(std::string_view bytes) {
    elf_prstatus status = {};
    if (bytes.size() < sizeof status) return;
    std::memcpy(&status, bytes.data(), sizeof status);
    user_regs_struct registers = {};
    static_assert(sizeof registers == sizeof status.pr_reg);
    std::memcpy(&registers, &status.pr_reg, sizeof registers);
    ThreadRegisters thread;
    thread.tid = status.pr_pid;
    thread.stack_pointer = util::machine::stack_pointer(registers);
    thread.thread_pointer = util::machine::thread_pointer(registers);
    append_words(bytes.substr(offsetof(elf_prstatus, pr_reg), sizeof status.pr_reg), thread.words);
    core_.threads.push_back(std::move(thread));
  }

  void take_process(std::string_view bytes) {
    elf_prpsinfo info = {};
    if (bytes.size() < sizeof info) return;
    std::memcpy(&info, bytes.data(), sizeof info);
    core_.pid = info.pr_pid;
  }

  // The number of files, the unit of their offsets, three words for each file, then their names.
  void take_files(std::string_view bytes) {
    std::vector<uint64_t> words;
    append_words(bytes, words);
    constexpr size_t kHead = 2;
    constexpr size_t kEach = 3;
    if (words.size() < kHead || words[0] > (words.size() - kHead) / kEach) return;
    std::string_view names = bytes.substr((kHead + words[0] * kEach) * sizeof words[0]);
    for (uint64_t i = 0; i < words[0]; ++i) {
      const uint64_t* file = &words[kHead + i * kEach];
      const size_t end = names.find('\0');
      if (end == std::string_view::npos) return;
      core_.files.push_back(
          {file[0], file[1], file[2] * words[1], std::string(names.substr(0, end))});
      names.remove_prefix(end + 1);
    }
  }

  CoreContents& core_;
};

void take_notes(Elf* elf, const GElf_Phdr& header, Notes& notes) {
  Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<int64_t>(header.p_offset), header.p_filesz,
                                        header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
  if (data == nullptr) return;
  GElf_Nhdr note;
  size_t name_at = 0;
  size_t bytes_at = 0;
  const char* all = static_cast<const char*>(data->d_buf);
  for (size_t at = 0; (at = gelf_getnote(data, at, &note, &name_at, &bytes_at)) != 0;) {
    std::string_view name(all + name_at, note.n_namesz);
    name = name.substr(0, name.find('\0'));
    notes.take(note.n_type, name, {all + bytes_at, note.n_descsz});
  }
}

void take_segment(const GElf_Phdr& header, CoreContents& core) {
  if (header.p_memsz == 0 || header.p_memsz > UINT64_MAX - header.p_vaddr) return;
  core.segments.push_back({header.p_vaddr, header.p_vaddr + header.p_memsz, header.p_offset,
                           std::min(header.p_filesz, header.p_memsz), (header.p_flags & PF_R) != 0,
                           (header.p_flags & PF_W) != 0, (header.p_flags & PF_X) != 0});
}

template <typename Part>
void sort_parts(std::vector<Part>& parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  uint64_t end = 0;
  std::erase_if(parts, [&](const Part& part) {
    if (part.begin < end || part.end <= part.begin) return true;
    end = part.end;
    return false;
  });
}

void check_end(int descriptor, uint64_t end, const std::string& name) {
  struct stat state = {};
  if (::fstat(descriptor, &state) != 0 || static_cast<uint64_t>(state.st_size) >= end) return;
  throw CoreError(
      fmt::format("{}: truncated: {} of {} bytes; dump core again with ulimit -c unlimited and "
                  "room on the disk",
                  name, state.st_size, end));
}

}  // namespace

CoreContents read_core(int descriptor, const std::string& name) {
  elf_version(EV_CURRENT);
  const OpenElf elf(elf_begin(descriptor, ELF_C_READ, nullptr));
  GElf_Ehdr header;
  if (elf == nullptr || gelf_getehdr(elf.get(), &header) == nullptr || header.e_type != ET_CORE) {
    throw CoreError(name + ": not a core file");
  }
  if (header.e_machine != util::machine::kElfMachine) {
    throw CoreError(name + ": a core file of another processor architecture than this machine's");
  }
  size_t count = 0;
  if (elf_getphdrnum(elf.get(), &count) != 0) count = 0;
  CoreContents core;
  Notes notes(core);
  uint64_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_filesz <= UINT64_MAX - segment.p_offset) {
      end = std::max(end, segment.p_offset + segment.p_filesz);
    }
    if (segment.p_type == PT_NOTE) take_notes(elf.get(), segment, notes);
    if (segment.p_type == PT_LOAD) take_segment(segment, core);
  }
  check_end(descriptor, end, name);
  if (core.threads.empty()) throw CoreError(name + ": has no registers of threads (NT_PRSTATUS)");
  sort_parts(core.segments);
  sort_parts(core.files);
  return core;
}

}  // namespace mtrace::symbols
