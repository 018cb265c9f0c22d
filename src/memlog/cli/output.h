// Where a command's --output says: a file, completely or not at all, or standard output.
#pragma once

#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/command.h"
#include "profile/file.h"

namespace mtrace::cli {

// The file is there after finish().
class Output {
 public:
  Output(const Arguments& arguments, const Streams& streams) : streams_(streams) {
    const std::string path = arguments.value("--output", "-");
    if (path != "-") file_.emplace(path);
  }
  void write(const std::string& text) {
    if (file_) {
      file_->write(text);
    } else {
      print(streams_, text);
    }
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  const Streams& streams_;
  std::optional<profile::Replacement> file_;
};

}  // namespace mtrace::cli
