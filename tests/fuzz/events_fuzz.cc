// The reader of event logs, the replay, and the reader of rings, on damaged input. The first byte
// says what the rest is: a file; the content of a chunk, in a file whose frames are whole; a ring;
// the same as the chunk, for counts of blocks that are left out, after stacks that they name.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/event_log.h"
#include "model/events/chunk_reader.h"
#include "model/events/event_log.h"
#include "model/events/live_blocks.h"
#include "model/events/replay_memlog.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "model/recording/chunk_writer.h"
#include "model/recording/ring_reader.h"
#include "util/error.h"

using namespace mtrace;

namespace {

std::string frame(std::string_view content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 1));
  return out;
}

std::string header() {
  events::Column head;
  head.put_raw({format::kEventHeaderMark, format::kEventMark});
  head.put_text(format::kEventsPid);
  head.put_text("4711");
  head.put_text(format::kEventsStarted);
  head.put_text("1700000000000000000");
  return std::string(head.bytes());
}

// A chunk with two stacks and an event.
std::string stacks() {
  events::ChunkWriter chunk(format::EventForm::kCompact);
  chunk.define_stack(1, {"", "malloc", false, 0, {{0, 0x1234}}});
  chunk.define_stack(2, {"", "calloc", true, 0, {{0, 0x1234}, {0, 0x5678}}});
  events::Event event;
  event.kind = events::Kind::kStart;
  chunk.put(event, 10);
  return chunk.finish();
}

void read_log(std::string_view bytes) {
  const int file = ::memfd_create("log", 0);
  if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    events::EventLog log(path);
    events::LiveBlocks blocks;
    uint64_t last = 0;
    for (events::Event event; log.next(event);) {
      if (event.time < last) std::abort();
      last = event.time;
      for (const profile::Frame& one : log.stack(event.stack).frames) {
        if (one.place == profile::Place::kModule && one.module >= log.modules().size())
          std::abort();
      }
      log.thread(event.thread);
      blocks.expect(log);
      blocks.apply(event);
    }
    const std::string made = profile::write(events::memlog_at(path, {}));
    try {
      profile::read("made", made);
    } catch (const util::FormatError&) {
      std::abort();
    }
  } catch (const util::FormatError&) {
  }
  ::close(file);
}

void read_ring(std::string_view bytes) {
  const auto ring = std::make_unique<format::EventRing>();
  std::memcpy(static_cast<void*>(ring.get()), bytes.data(), std::min(bytes.size(), sizeof *ring));
  events::RingReader reader(*ring);
  uint64_t taken = 0;
  for (int i = 0; i < 3; ++i) {
    reader.look(UINT64_MAX, 0.6);
    while (reader.next_stamp() != UINT64_MAX) {
      reader.text(2, reader.unit(1).a);
      reader.take();
      if (++taken > 4 * format::kEventUnits) std::abort();
    }
    reader.release();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 == 0) read_log(rest);
  if (data[0] % 4 == 1) {
    const std::string mark = format::kEventChunkMark + std::to_string(format::kEventsVersion);
    read_log(frame(header()) + frame(mark + std::string(rest)));
  }
  if (data[0] % 4 == 2) read_ring(rest);
  if (data[0] % 4 == 3) {
    read_log(frame(header()) + frame(stacks()) + frame(format::kLeftOutMark + std::string(rest)));
  }
  return 0;
}
