// Files that claim to be ledgers. An input is a list of pieces: offset (4 bytes), length (2 bytes)
// and the bytes that stand there; what no piece covers is zero. A real ledger has two megabytes, of
// which nearly all are zero.
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "model/ledger/ledger_memlog.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "util/error.h"

namespace {

constexpr uint32_t kMostBytes = 4 << 20;

// Two of them, since closing one is LedgerFile's.
int make_file(const uint8_t* data, size_t size) {
  const int file = memfd_create("ledger", 0);
  if (file < 0) abort();
  while (size >= 6) {
    uint32_t offset;
    uint16_t length;
    memcpy(&offset, data, sizeof offset);
    memcpy(&length, data + 4, sizeof length);
    data += 6;
    size -= 6;
    if (length > size) length = static_cast<uint16_t>(size);
    if (pwrite(file, data, length, offset % kMostBytes) < 0) abort();
    data += length;
    size -= length;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mtrace::ledger;
  using namespace mtrace::util;
  using namespace mtrace::profile;
  Memlog memlog;
  try {
    const LedgerFile file(make_file(data, size), "f");
    const LedgerState state = read_ledger(file);
    memlog = ledger_memlog(file, state, {"recovered", last_sign_of_life(file, state).when, "", {}});
  } catch (const LedgerError&) {
    return 0;
  } catch (const FormatError&) {
    return 0;
  }
  read("recovered", write(memlog));
  return 0;
}
