// What resident memory is, by the lines `region` of a report.
#pragma once

#include <string_view>

#include "model/profile/model.h"

namespace mtrace::profile {

// Name of memory that nothing is known of.
inline constexpr std::string_view kUnnamedRegion = "mapped without a name";

// Names the regions of a report that has been read, adds up those of one name and sorts them, most
// resident bytes first. Then adds the note "resident, not malloc's: NAME N MiB, ...", with each
// that has 8 MiB and a fifth of what is resident, unless the report has that note.
void name_regions(Header& header);

}  // namespace mtrace::profile
