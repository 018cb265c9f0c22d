// memlog export -f clickhouse.
#pragma once

#include <string>

#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/fleet/store.h"

namespace mtrace::cli {

// Writes the rows of the reports that the operands name, or inserts them in a server (--to).
// `manual`: of the command. Returns the exit status. Throws what reading the reports throws,
// fleet::ServerError, UsageError.
int export_fleet(const Manual& manual, const Arguments& arguments, const Streams& streams);

// The options of commands that receive reports of many machines.

inline constexpr Option kMaxDiskOption = {
    "--max-disk", "", "SIZE",
    R"(Remove the reports that were taken first when all together take more than SIZE: 50G.)"};
inline constexpr Option kMaxAgeOption = {
    "--max-age", "", "TIME", R"(Remove reports that were taken longer ago than TIME: 30d.)"};

// From --max-disk and --max-age. Throws UsageError in the name of `command`.
fleet::StoreLimits read_store_limits(const std::string& command, const Arguments& arguments);

// The options of commands that ask a server.
inline constexpr Option kServerTokenOption = {
    "--token-file", "", "FILE",
    R"(Send the token in the first line of FILE, which only its owner may read.)"};
inline constexpr Option kCaFileOption = {
    "--ca-file", "", "FILE",
    R"(Of an https server, accept a certificate that is signed by one in FILE (PEM). Default: by one
    that this machine trusts.)"};

}  // namespace mtrace::cli
