// An HTML page about the reports of one process: pictures, a table, comparisons.
#pragma once

#include "model/profile/model.h"
#include "model/profile/timeline.h"
#include "util/prelude.h"
#include "view/analyze/responsible.h"
#include "view/analyze/series.h"
#include "view/export/event_stream.h"

namespace mtrace::exporting {

// Lines of a source file around one of them.
struct SourceLines {
  uint64_t first = 0;   // number of the first of `texts`
  uint64_t chosen = 0;  // number of the frame's line
  std::vector<std::string> texts;
};
// Returns the lines around frame `at` of a row; no texts: the file is not here.
using FindLines = std::function<SourceLines(const analyze::Row& row, size_t at)>;

// Stands for the peak, which is no report.
constexpr int64_t kPeakState = -1;

struct PageInput {
  const analyze::Series& series;              // at least one state
  std::vector<profile::Header> headers = {};  // of the states
  std::string command = {};                   // as it is to be shown
  profile::Total before = {};                 // what was live before the first report added
  bool complete = false;                      // the reports are complete from the first on
  bool filtered = false;                      // the series has only some of the stacks
  std::vector<profile::Sample> samples = {};  // between the reports
  bool at_peak = false;                       // opens on the peak, if the last report has one
  bool of_log = false;                        // the report is the end of an event log
  std::vector<std::string> remarks = {};      // for the reader
  const analyze::Responsible* responsible = nullptr;  // folds stacks; must be set
  FindLines lines = {};                               // empty: the page has no source lines
  bool all_frames = false;                            // the page opens with all frames
  // At each state and at kPeakState, as far as they are known. The page takes those of a stack that
  // add up to what its report says; other stacks count at their average size.
  std::map<int64_t, StackSizes> sizes = {};
};

// Returns the page. It is self-contained and loads nothing. Shows up to 20,000 stacks or 400,000
// changes: those with the most bytes at any state. Adds up the others as "in N places". Without a
// filter the stacks of each state add up to what was live; one of them stands for what the reports
// do not list. Throws std::runtime_error when a number exceeds 2^53, the limit of browsers, or a
// sum does not fit 64 bits.
std::string report_page(const PageInput& input);

// The styles, scripts and HTML of src/memlog/export/page, unchanged.

enum class PageFile {
  kFlameStyle,   // flame.css: boxes, for the SVG file and the page
  kFlameScript,  // flame.js: zoom and search, for both
  kSvgScript,    // svg.js: for the SVG file around its boxes
  kPage,         // report.html
  kPageStyle,    // report.css
  kPageScripts,  // the page's scripts, concatenated
};

std::string_view page_file(PageFile file);

}  // namespace mtrace::exporting
