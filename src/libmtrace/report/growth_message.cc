#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "format/escape.h"
#include "ledger/ledger.h"
#include "report/frame_writer.h"
#include "report/launcher.h"
#include "report/savepoints.h"

namespace mtrace::report {
namespace {

constexpr size_t kMessageBuffer = 64 * 1024;
constexpr uint64_t kLongest = 5'000'000'000u;  // nanoseconds
constexpr uint64_t kDecoderSeconds = 10;

Writer& amount(Writer& out, int64_t bytes, int64_t blocks) {
  return out.signed_number(bytes).text(" bytes ").signed_number(blocks).text(" blocks");
}

void write_raw(Writer& out, const Growth& growth) {
  amount(out.text("mtrace: "), growth.bytes, growth.blocks).text(" live since savepoint ");
  if (growth.label[0] == '\0') {
    out.text("(without name)");
  } else {
    out.escaped(growth.label);
  }
  out.text(growth.grown == 0 ? "\n" : ", of which:\n");
  ModuleSet modules;
  for (unsigned i = 0; i < growth.listed; ++i) {
    const Grown& grown = growth.largest[i];
    amount(out, grown.bytes, grown.blocks).put('\n');
    write_frames(out, ledger::g_ledger.stacks.record(grown.stack), modules);
  }
  if (growth.grown > growth.listed) {
    out.text("and ").number(growth.grown - growth.listed).text(" more stacks that grew\n");
  }
  write_modules(out, modules);
}

struct Decoder : Launch {
  long result;  // wait status of the tool, or a negative errno
};

void decode(Launch& launch) {
  static_cast<Decoder&>(launch).result = run_tool(launch);
  store_release(launch.state, 0u);
}

// Runs `memlog decode` with standard input from `raw`, which is read from its beginning, and
// standard output to `named`. True: the tool succeeded and has written something. Waits at most
// five seconds, then kills the tool.
bool decode_file(int raw, int named) {
  if (!may_start_tool() || base::rewind_file(raw) != 0) return false;
  auto* decoder = static_cast<Decoder*>(base::map_memory(sizeof(Decoder)));
  if (decoder == nullptr) return false;
  static constexpr const char* kArguments[] = {"memlog", "decode", "--no-modules", nullptr};
  // The program waits for it, so no lower priority.
  prepare(*decoder, base::Helper::kDecoder, decode, kArguments, kDecoderSeconds, 0);
  decoder->program.input = raw;
  decoder->program.output = named;
  const bool started = start(*decoder);
  if (started && !finish(*decoder, kLongest, 0)) return false;  // its memory is in use
  const bool good = started && decoder->result == 0 && base::file_size(named) > 0;
  base::unmap_memory(decoder, sizeof(Decoder));
  return good;
}

long write_decoded(const Growth& growth, char* buffer, int fd) {
  const long raw = base::create_memory_file();
  Writer out(buffer, kMessageBuffer, base::failed(raw) ? fd : static_cast<int>(raw));
  write_raw(out, growth);
  long error = out.finish();
  if (base::failed(raw)) return error;
  if (error == 0) {
    const long named = base::create_memory_file();
    const bool decoded = !base::failed(named) && growth.listed != 0 &&
                         decode_file(static_cast<int>(raw), static_cast<int>(named));
    error = base::copy_file(static_cast<int>(decoded ? named : raw), fd, buffer, kMessageBuffer);
    if (!base::failed(named)) base::close_file(static_cast<int>(named));
  }
  base::close_file(static_cast<int>(raw));
  return error;
}

}  // namespace

bool write_growth(const Growth& growth, int fd) {
  const Scratch<char> buffer(kMessageBuffer);
  if (!buffer) return false;
  long error = 0;
  base::with_own_files([&] { error = write_decoded(growth, buffer.get(), fd); }, fd);
  return error == 0;
}

}  // namespace mtrace::report
