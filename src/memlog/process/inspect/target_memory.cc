#include "process/inspect/target_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "process/inspect/error.h"
#include "process/inspect/permission.h"

namespace mtrace::process {

TargetMemory::TargetMemory(pid_t pid, std::nothrow_t)
    : file_(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC)),
      error_(file_ < 0 ? errno : 0) {}

TargetMemory::TargetMemory(pid_t pid) : TargetMemory(pid, std::nothrow) {
  if (error_ == 0) return;
  throw AttachError(error_ == EACCES || error_ == EPERM
                        ? why_forbidden(pid)
                        : fmt::format("cannot be traced: {}", std::strerror(error_)));
}

TargetMemory::~TargetMemory() {
  if (file_ >= 0) ::close(file_);
}

bool TargetMemory::read(uint64_t address, void* data, size_t size) const {
  return is_all(::pread(file_, data, size, static_cast<off_t>(address)), size);
}

bool TargetMemory::write(uint64_t address, const void* data, size_t size) const {
  return is_all(::pwrite(file_, data, size, static_cast<off_t>(address)), size);
}

bool TargetMemory::is_all(ssize_t done, size_t size) const {
  if (done == static_cast<ssize_t>(size)) return true;
  if (error_ != 0) errno = error_;
  if (done >= 0) errno = done == 0 ? ESRCH : EFAULT;
  return false;
}

const std::string* PageCache::page(uint64_t begin) {
  const auto [entry, fresh] = pages_.try_emplace(begin);
  if (!fresh) return entry->second.empty() ? nullptr : &entry->second;
  std::string bytes(kPage, '\0');
  if (!memory_.read(begin, bytes.data(), bytes.size())) return nullptr;
  entry->second = std::move(bytes);
  return &entry->second;
}

bool PageCache::read_word(uint64_t address, uint64_t* word) {
  char bytes[sizeof *word];
  const uint64_t begin = address & ~(kPage - 1);
  const uint64_t offset = address - begin;
  const size_t first = std::min<size_t>(sizeof bytes, kPage - offset);
  const std::string* from = page(begin);
  if (from == nullptr) return false;
  std::memcpy(bytes, from->data() + offset, first);
  if (first < sizeof bytes) {
    from = page(begin + kPage);
    if (from == nullptr) return false;
    std::memcpy(bytes + first, from->data(), sizeof bytes - first);
  }
  std::memcpy(word, bytes, sizeof bytes);
  return true;
}

}  // namespace mtrace::process
