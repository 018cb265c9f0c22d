#include "terminal/size.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace mtrace::terminal {
namespace {

constexpr char kEscape = '\033';

// Where the character, or the sequence that sets a colour, at `at` ends.
size_t next_of(std::string_view text, size_t at) {
  if (text[at] == kEscape) {
    const size_t end = text.find('m', at);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  return at;
}

void append_cut(std::string& out, std::string_view line, size_t columns) {
  if (columns_of(line) <= columns) {
    out += line;
    return;
  }
  size_t taken = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t next = next_of(line, at);
    // Colours are set and reset also where nothing is shown any more.
    const bool shown = line[at] != kEscape;
    if (!shown || taken + 1 < columns) out += line.substr(at, next - at);
    if (shown && ++taken == columns) out += "…";
    at = next;
  }
}

}  // namespace

Screen screen_of(FILE* stream) {
  winsize size = {};
  const int descriptor = ::fileno(stream);
  if (descriptor < 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

size_t columns_of(std::string_view line) {
  size_t columns = 0;
  for (size_t at = 0; at < line.size(); at = next_of(line, at)) columns += line[at] != kEscape;
  return columns;
}

std::string cut_lines(const std::string& text, size_t columns) {
  if (columns == 0) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    append_cut(out, std::string_view(text).substr(at, end - at), columns);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace mtrace::terminal
