// The processes in OpenMetrics, for Prometheus.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "serve/heaps.h"
#include "serve/processes.h"

namespace mtrace::serve {

inline constexpr char kMetricsType[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct MeasuredProcess {
  ProcessTotals totals;
  Heap* heap;  // looked at; of the same process
};

// Returns the exposition. `top`: the functions of each process that have a series of their own; the
// rest is the series "other".
std::string metrics(const std::vector<MeasuredProcess>& processes, size_t top);

// Escapes a label's value.
std::string label_text(const std::string& value);

}  // namespace mtrace::serve
