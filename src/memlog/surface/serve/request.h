// What a request asks for: the parts of its path, and its query as the options of a command.
#pragma once

#include "surface/cli/command.h"
#include "surface/serve/http.h"
#include "util/prelude.h"

namespace mtrace::serve {

// The query is unusable: status 400.
class QueryError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Query = std::multimap<std::string, std::string>;
using Given = cli::Arguments::Given;
using PathParts = std::map<std::string, std::string>;

// Returns the parts of a path, by NAME, for which `pattern` has {NAME}; none of them is empty.
// Nothing: the path is another.
std::optional<PathParts> match_path(std::string_view pattern, std::string_view path);
// The NAMEs of a pattern, in their order.
std::vector<std::string> names_of(std::string_view pattern);

// Returns the option that a parameter stands for: min_bytes is --min-bytes, and limit is --number
// where the command has no --limit. nullptr: there is none.
const cli::Option* option_of(const cli::Manual& manual, const std::string& parameter);

// Returns the options of a command that `query` gives. `allowed`: the parameters that this path
// takes; options that name files are never among them: whoever may ask may not read files. Throws
// QueryError for any other parameter, for a value that is too long or has control characters, and
// for a switch that is neither "1" or "true", nor "0" or "false".
Given view_options(const Query& query, const cli::Manual& manual,
                   const std::vector<std::string>& allowed);

// The action expire: which blocks, of those that a process allocates meanwhile, outlive a time.
struct ExpireRequest {
  std::chrono::milliseconds after{10'000};  // how long a block may live
  std::chrono::seconds length{30};          // of the watch
  uint64_t most = 0;                        // end it once so many blocks have expired
};

// Throws QueryError.
ExpireRequest read_expire(const Query& query);

// Returns a number of the query from `least` to `most`. Throws QueryError.
long number_of(const Query& query, const std::string& name, long otherwise, long least, long most);

}  // namespace mtrace::serve
