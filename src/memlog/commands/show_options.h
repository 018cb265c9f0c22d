// What memlog show can be told.
#pragma once

#include "cli/arguments.h"
#include "cli/command.h"
#include "text/style.h"

namespace mtrace::cli {

struct ShowOptions {
  text::Style style;
  bool json = false;
};

Manual show_manual();

// Throws UsageError.
ShowOptions read_show_options(const Arguments& arguments, const Streams& streams);

}  // namespace mtrace::cli
