// The processes in OpenMetrics, for Prometheus.
#pragma once

#include <string>
#include <vector>

#include "surface/serve/heap_meter.h"
#include "surface/serve/processes.h"

namespace mtrace::serve {

inline constexpr char kMetricsType[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct MeasuredProcess {
  ProcessTotals totals;
  HeapFigures heap;
};

// Returns the exposition.
std::string metrics(const std::vector<MeasuredProcess>& processes);

// Escapes a label's value.
std::string label_text(const std::string& value);

}  // namespace mtrace::serve
