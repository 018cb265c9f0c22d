// Packs a row of call-frame information into a Rule.
#pragma once

#include "cfi/row.h"
#include "modules/object.h"
#include "unwind/rule.h"

namespace mtrace::unwind {

// kSpecial when the row has no packed form. Reads only inside the object's bounds.
Rule pack_rule(const Object& object, const Row& row);

}  // namespace mtrace::unwind
