#include "terminal/size.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "terminal/columns.h"

namespace mtrace::terminal {
namespace {

void append_cut(std::string& out, std::string_view line, size_t columns) {
  if (columns_of(line) <= columns) {
    out += line;
    return;
  }
  const std::string_view shown = beginning_of(line, columns - 1);
  out += shown;
  out += "…";
  // Colours are set and reset also where nothing is shown any more.
  for (size_t at = shown.size(); at < line.size();) {
    const Character one = character_at(line, at);
    if (line[at] == '\033') out += line.substr(at, one.bytes);
    at += one.bytes;
  }
}

}  // namespace

Screen screen_of(FILE* stream) {
  winsize size = {};
  const int descriptor = ::fileno(stream);
  if (descriptor < 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
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
