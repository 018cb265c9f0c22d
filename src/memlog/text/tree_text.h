// A tree of stacks as text.
#pragma once

#include <string>

#include "analyze/table.h"
#include "analyze/tree.h"
#include "text/listing.h"
#include "text/style.h"

namespace mtrace::text {

// The heap's tree, then that of each other kind. A node that does not branch goes on below itself
// without numbers, since they are the same.
std::string trees_text(const analyze::Table& table, const analyze::TreeShape& shape,
                       const Context& context, const Style& style);

}  // namespace mtrace::text
