// memlog decode: names for the addresses in any text.

#include "model/symbols/text_decoder.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "util/compression.h"
#include "util/error.h"

namespace mtrace::cli {
namespace {

constexpr char kDecodeHelp[] = R"(
Copies text and adds names to the addresses in it. A line that contains an address in a module gets
the function, the file and line, and the functions that the compiler inlined there. All other text
stays as it is. Without FILE, or with -, reads standard input. memlog recognises:

  a frame alone on its line:   (/usr/bin/app+0x1105)
  the same in other text:      #1 0x55d0c0a01105 in main (/bin/app+0x1105)
  glibc's backtrace_symbols(): /usr/bin/app(+0x1d) [0x55d0c0a01106]
  addresses alone:             [0x55d0c0a01106]
                               #1  0x00007f0012345678 in ?? ()

A frame alone on its line, as mtrace_backtrace() and memlogs write it, becomes a named frame of a
memlog; each inlined function gets a line of its own before it. Other lines get the names at their
end, innermost first, separated by <; those of several addresses are separated by ";", with ?? for
one without a name. The second form is also AddressSanitizer's, the last gdb's. Offsets that these
and mtrace write point into the call and are used as they are. Addresses alone and in brackets are
return addresses; memlog subtracts 1. A relative path (./app) is looked for in this directory.

mtrace_backtrace() writes lines like this one after its frames:

  # module: /usr/bin/app build-id=8c02f1 base=0x55d0c0a00000

They tell which build of a module the addresses belong to. If the module has changed since, its
frames get no names, and a message says so. An address alone gets a name if the text has such lines
or those of /proc/PID/maps, below it or above it. Names are looked up where memlog resolve looks them up.
)";

// Decoded at once; what is longer is decoded in pieces.
constexpr size_t kPiece = size_t{64} << 20;

std::string without_modules(const std::string& text) {
  constexpr std::string_view kLine = "# module: ";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (!line.starts_with(kLine)) out += line;
    at = end;
  }
  return out;
}

void decode_file(const std::string& name, bool modules, symbols::TextDecoder& decoder,
                 const Streams& streams) {
  util::Input input(name);
  std::string text;
  const auto decode = [&](size_t size) {
    const std::string named = decoder.decode(std::string_view(text).substr(0, size));
    print(streams, modules ? named : without_modules(named));
    std::fflush(streams.out);
    text.erase(0, size);
  };
  char buffer[65536];
  size_t lines = 0;
  try {
    for (size_t got; (got = input.read(buffer, sizeof buffer)) != 0;) {
      text.append(buffer, got);
      lines += static_cast<size_t>(std::count(buffer, buffer + got, '\n'));
      if (text.size() < kPiece) continue;
      // Whole lines; one that is longer than all this is no stack.
      const size_t newline = text.rfind('\n');
      decode(newline == std::string::npos ? text.size() : newline + 1);
    }
  } catch (const util::DamagedCompression& damage) {
    decode(text.size());
    throw util::damage_in(name == "-" ? "<stdin>" : input.path(), lines, damage);
  }
  decode(text.size());
}

int run_decode(const Arguments& arguments, const Streams& streams) {
  std::vector<std::string> files = arguments.operands();
  if (files.empty()) files.emplace_back("-");
  symbols::TextDecoder decoder(search_path(arguments));
  int status = kGood;
  for (const std::string& file : files) {
    try {
      decode_file(file, !arguments.has("--no-modules"), decoder, streams);
    } catch (const util::FileError& error) {
      complain(streams, error.what());
      status = kFailed;
    } catch (const util::FormatError& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kFailed;
    }
  }
  if (!arguments.has("--quiet")) {
    for (const std::string& note : decoder.notes()) complain(streams, note);
  }
  return status;
}

}  // namespace

const Command& decode_command() {
  static const Command command = {
      {"decode",
       "name the addresses in a log or a printed stack",
       "[OPTION]... [FILE...]",
       kDecodeHelp,
       {kSysrootOption,
        kSymbolsOption,
        {"--no-modules", "", "", "Leave the \"# module:\" lines out of the output."},
        {"--quiet", "-q", "", "Do not say why names are missing."}},
       R"(0: done, even if some addresses have no name; 1: a file cannot be read; 2: wrong command
       line.)",
       R"(  memlog decode app.log
  journalctl -u app | memlog decode | less
  memlog decode --sysroot /srv/image --symbols ./debug crash.txt
)"},
      run_decode};
  return command;
}

}  // namespace mtrace::cli
