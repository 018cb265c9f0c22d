#include "analyze/library_code.h"

#include <fmt/format.h>

#include "analyze/frame_pattern.h"
#include "analyze/function_name.h"
#include "analyze/library_table.h"
#include "analyze/pattern_lines.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Module;
using profile::Place;

// The frame that has the address.
const Frame& placed(const std::vector<Frame>& frames, size_t at) {
  while (at + 1 < frames.size() && frames[at].place == Place::kInlined) ++at;
  return frames[at];
}

}  // namespace

void FramePatterns::Any::add(std::string_view expression) {
  compile(expression);  // says what is wrong with it
  all_ += (all_.empty() ? "(?:" : "|(?:") + std::string(expression) + ')';
  compiled_ = nullptr;
}

bool FramePatterns::Any::match(const std::string& text) const {
  if (all_.empty()) return false;
  if (compiled_ == nullptr) compiled_ = compile(all_);
  return re2::RE2::PartialMatch(text, *compiled_);
}

void FramePatterns::add_pattern(std::string_view pattern) {
  const auto rest_after = [&](std::string_view prefix) {
    if (!pattern.starts_with(prefix) || pattern.substr(prefix.size()).starts_with(':')) {
      return false;
    }
    pattern.remove_prefix(prefix.size());
    return true;
  };
  if (rest_after("source:")) return sources_.add(pattern);
  if (rest_after("module:")) return modules_.add(pattern);
  const bool any = rest_after("any:");
  if (!any) rest_after("function:");
  functions_.add(pattern);
  if (!any) return;
  sources_.add(pattern);
  modules_.add(pattern);
}

void FramePatterns::add(const std::string& name, std::string_view text) {
  each_pattern_line(name, text, [&](std::string_view line) {
    if (!line.starts_with("function:") && !line.starts_with("source:") &&
        !line.starts_with("module:") && !line.starts_with("any:")) {
      throw PatternError("a line must begin with function:, source:, module: or any:");
    }
    add_pattern(line);
  });
}

bool FramePatterns::has_source(const std::string& source) const {
  if (sources_.empty() || source.empty()) return false;
  return sources_.match(source) || sources_.match(source.substr(0, source.rfind(':')));
}

LibraryCode::LibraryCode() {
  constexpr char kName[] = "the built-in table";
  allocators_.add(kName, kAllocators);
  internals_.add(kName, kInternals);
  start_up_.add(kName, kStartUp);
  system_.add(kName, kSystem);
}

const LibraryCode::Known& LibraryCode::of_function(const std::string& function) const {
  const auto [place, added] = functions_.try_emplace(function);
  Known& known = place->second;
  if (!added) return known;
  const std::string called = called_name(function);
  known.own = own_.has_function(called);
  known.library = library_.has_function(called);
  known.code = allocators_.has_function(called)  ? Code::kAllocator
               : start_up_.has_function(called)  ? Code::kStartUp
               : internals_.has_function(called) ? Code::kLibrary
                                                 : Code::kOwn;
  return known;
}

const LibraryCode::Known& LibraryCode::of_module(const std::string& path) const {
  const auto [place, added] = modules_.try_emplace(path);
  Known& known = place->second;
  if (!added) return known;
  known.own = own_.has_module(path);
  known.library = library_.has_module(path);
  known.code = allocators_.has_module(path)  ? Code::kAllocator
               : internals_.has_module(path) ? Code::kLibrary
               : system_.has_module(path)    ? Code::kSystem
                                             : Code::kOwn;
  return known;
}

Code LibraryCode::of(const std::vector<Frame>& frames, size_t at,
                     const std::vector<Module>& modules) const {
  const Frame& frame = frames[at];
  const Frame& address = placed(frames, at);
  const bool python = address.place == Place::kModule && modules[address.module].python;
  Known function;
  if (!frame.function.empty()) function = of_function(frame.function);
  // The table's functions are those of other languages.
  if (python) function.code = Code::kOwn;
  Known module;
  if (address.place == Place::kModule) {
    module = of_module(modules[address.module].path);
  } else if (frame.function.empty()) {
    module.code = Code::kSystem;
  }
  if (function.own || module.own || own_.has_source(frame.source)) return Code::kOwn;
  if (function.library || module.library || library_.has_source(frame.source)) {
    return Code::kLibrary;
  }
  return function.code != Code::kOwn ? function.code : module.code;
}

std::string library_table() {
  return fmt::format("{}\n{}\n{}\n{}", kAllocators, kInternals, kStartUp, kSystem);
}

}  // namespace mtrace::analyze
