// The processes as Prometheus reads them.
#pragma once

#include <string>
#include <vector>

#include "surface/serve/heap_meter.h"
#include "surface/serve/processes.h"

namespace mtrace::serve {

inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr char kOpenMetricsType[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct MeasuredProcess {
  ProcessTotals totals;
  HeapFigures heap;
};

// Returns the exposition. `open`: in OpenMetrics, also with the names of 0.2, which have other
// units than Prometheus wants.
std::string metrics(const std::vector<MeasuredProcess>& processes, bool open);

// Escapes a label's value.
std::string label_text(const std::string& value);

}  // namespace mtrace::serve
