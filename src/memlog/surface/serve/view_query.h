// Turns the query of a request into the command line of a view.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace mtrace::serve {

// The query is unusable: status 400.
class QueryError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Query = std::multimap<std::string, std::string>;

// A parameter of a query, and the option that it stands for.
struct Parameter {
  const char* name;
  const char* option;
  bool is_switch;  // its value must be "1" or "true", or "0" or "false": not given
  const char* help;
};

// All parameters that views take. Options that name files are not among them: whoever may ask may
// not read files.
const std::vector<Parameter>& view_parameters();

// Returns the options of `query` as words "--option=value". `allowed`: the names that this view
// takes. Throws QueryError for any other name, and for a value that is too long or has control
// characters.
std::vector<std::string> view_options(const Query& query, const std::vector<std::string>& allowed);

// Returns a number of the query from `least` to `most`. Throws QueryError.
long number_of(const Query& query, const std::string& name, long otherwise, long least, long most);

}  // namespace mtrace::serve
