// The reader of archives (memlog unpack) on damaged input. The first byte says how many bytes it is
// given at once. Blocks that begin like a header get the checksum that a header has, or nothing
// behind the check would be reached. No file may lead out of a directory or have other content than
// the archive, and what was read can be written and read again.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/tar.h"

using namespace mtrace;

namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMagicAt = 257;
constexpr size_t kCheckAt = 148;
constexpr size_t kCheckSize = 8;

using Files = std::vector<std::pair<std::string, std::string>>;

void check(bool good) {
  if (!good) __builtin_trap();
}

void mend_checksums(std::string& archive) {
  for (size_t at = 0; at + kBlock <= archive.size(); at += kBlock) {
    char* block = archive.data() + at;
    if (std::memcmp(block + kMagicAt, "ustar", 5) != 0) continue;
    std::memset(block + kCheckAt, ' ', kCheckSize);
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += static_cast<uint8_t>(block[i]);
    std::snprintf(block + kCheckAt, kCheckSize, "%06o", sum);
  }
}

// The files before the place where the archive cannot be read on.
Files files_of(std::string_view archive, size_t step) {
  util::TarReader reader([&](char* to, size_t size) {
    const size_t got = std::min({size, step, archive.size()});
    std::memcpy(to, archive.data(), got);
    archive.remove_prefix(got);
    return got;
  });
  Files files;
  util::TarFile file;
  try {
    while (reader.next(file)) {
      std::string content;
      char piece[100];
      for (size_t got = 1; got != 0;) {
        got = reader.read(piece, sizeof piece);
        content.append(piece, got);
      }
      check(content.size() == file.size);
      files.emplace_back(file.name, std::move(content));
    }
  } catch (const util::TarError&) {
  }
  return files;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string archive(reinterpret_cast<const char*>(data + 1), size - 1);
  mend_checksums(archive);
  const Files files = files_of(archive, size_t{1} + data[0]);
  std::string again;
  util::TarWriter writer([&](std::string_view part) { again += part; });
  for (const auto& [name, content] : files) {
    check(!name.empty() && name.front() != '/' && ("/" + name + "/").find("/../") == name.npos);
    writer.begin({name, content.size(), {}});
    writer.write(content);
  }
  writer.finish();
  check(files_of(again, again.size()) == files);
  return 0;
}
