// The paths that memlog serve answers: one table for the dispatcher and for the description of the
// interface in OpenAPI.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "view/json/stack.h"

namespace mtrace::serve {

enum class Target {
  kIndex,
  kStyle,
  kScript,
  kTextScript,
  kReportsScript,
  kActionsScript,
  kCoursesScript,
  kMetrics,
  kHeap,
  kAllocs,
  kPprofHeap,
  kPprofProgram,
  kPprofHasSymbols,
  kPprofSymbols,
  kOpenApi,
  kSession,
  kEvents,
  kProcesses,
  kProcess,
  kFunctions,
  kFunctionEvents,
  kStacks,
  kTree,
  kTimeline,
  kRegions,
  kExport,
  kReports,
  kReportsStacks,
  kReportsTree,
  kReportsLeaks,
  kReportsRegions,
  kReportsLogs,
  kReportsEvents,
  kReportsExport,
  kDiff,
  kMemlogs,
  kMemlog,
  kReceive,
  kReport,
  kAttach,
  kDetach,
  kExpire,
};

struct Route {
  Target target;
  const char* method;  // "GET" (also HEAD), "POST" or "PUT"
  const char* path;    // with {NAME} for a part that varies
  const char* summary;
  const char* type;                // of the answer
  std::vector<std::string> query;  // parameters
  std::vector<std::string> keys;   // of the answer's object, if it is JSON
  bool open = false;               // holds no data of a process: needs no token
  bool asks = false;               // a POST request that changes nothing: needs no --allow-actions
};

const std::vector<Route>& routes();

struct Match {
  const Route* route;
  std::map<std::string, std::string> parts;  // by NAME
};

// Returns the route of a path, of several methods the one of `method`; nothing: no route has this
// path. `method` "HEAD" is "GET".
std::optional<Match> find_route(const std::string& method, const std::string& path);

// Returns the description of the interface, OpenAPI 3.0.
json::Value openapi();

}  // namespace mtrace::serve
