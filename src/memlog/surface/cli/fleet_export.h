// memlog export -f clickhouse.
#pragma once

#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/fleet/remote.h"
#include "util/prelude.h"

namespace mtrace::cli {

// Writes the rows of the reports that the operands name, or inserts them in a server (--to).
// `manual`: of the command. Returns the exit status. Throws what reading the reports throws,
// fleet::ServerError, UsageError.
int export_fleet(const Manual& manual, const Arguments& arguments, const Streams& streams);

// The options of commands that receive reports of many machines.

inline constexpr Option kMaxDiskOption = {
    "--max-disk",
    "",
    "SIZE",
    R"(Remove the oldest reports and event logs when all together take more than SIZE: 50G.)",
    "",
    "--receive"};
inline constexpr Option kMaxAgeOption = {
    "--max-age", "",         "TIME", R"(Remove reports that were taken longer ago than TIME: 30d.)",
    "",          "--receive"};

// From --max-disk and --max-age. Throws UsageError.
fleet::StoreLimits read_store_limits(const Arguments& arguments);

// The options of commands that ask a memlog serve.
inline constexpr Option kServerTokenOption = {
    "--token-file", "", "FILE",
    R"(Send the token in the first line of FILE, which only its owner may read.)"};
inline constexpr Option kCaFileOption = {
    "--ca-file", "", "FILE",
    R"(Of an https server, accept a certificate that is signed by one in FILE (PEM). Default: by one
    that this machine trusts.)"};

// Returns the server at a URL, with these options. Throws std::runtime_error for another text and
// for a token that cannot be used.
fleet::Remote remote_at(const std::string& url, const Arguments& arguments);

}  // namespace mtrace::cli
