#include "text/top_help.h"

namespace mtrace::text {

std::string top_keys() {
  return "l live g growth a allocs  p peak  enter open  s stacks  / filter  ? help q quit";
}

std::vector<std::string> top_help() {
  return {
      "Sort by",
      "  l  live bytes          g  growth per second",
      "  a  allocations         p  bytes at the peak of the process",
      "",
      "Functions and stacks",
      "  up, down, k, j   select a row",
      "  enter            show or hide a function's stacks, or a stack's frames",
      "  s                switch between functions and stacks",
      "  /                filter: show only stacks with a frame that matches",
      "  escape           remove the filter",
      "",
      "Numbers",
      "  m      set a mark: live and blocks are then the change since the mark",
      "  u      remove the mark",
      "  space  refresh now",
      "",
      "  q quits, any other key goes back",
  };
}

}  // namespace mtrace::text
