#include "view/reports/repository.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace mtrace::reports {

namespace fs = std::filesystem;

Repository::Repository(symbols::SearchPath where, const std::string& root,
                       analyze::ResponsiblePointer responsible)
    : responsible_(std::move(responsible)), paths_(std::move(where)), files_({}) {
  std::error_code error;
  root_ = fs::weakly_canonical(root, error);
}

std::string Repository::root_directory() {
  for (const char* name : {"GITHUB_WORKSPACE", "CI_PROJECT_DIR"}) {
    const char* value = std::getenv(name);
    std::error_code error;
    if (value != nullptr && fs::is_directory(value, error)) return value;
  }
  return ".";
}

void Repository::learn(const analyze::Table& table) {
  std::vector<const profile::Frames*> stacks;
  for (const analyze::Row& row : table.rows()) stacks.push_back(&row.frames);
  paths_.learn(table.modules(), stacks);
}

RepositoryLine Repository::line_of(const analyze::Table& table, const analyze::Row& row) {
  RepositoryLine other;
  const size_t responsible = responsible_->of(row.frames, table.modules());
  for (size_t i = 0; i < row.frames.size(); ++i) {
    const auto [name, line] = symbols::split_source(row.frames[i].source);
    if (line == 0) continue;
    const std::string compiled = paths_.find(table.modules(), row.frames, i);
    const symbols::SourceFile& found = files_.find(compiled, name);
    std::error_code error;
    const std::string path =
        found.path.empty() ? "" : fs::weakly_canonical(found.path, error).string();
    if (path.starts_with(root_ + '/')) {
      return {path.substr(root_.size() + 1), line, row.frames[i].function};
    }
    if (other.file.empty() && i >= responsible) {
      other = {name, line, row.frames[i].function};
    }
  }
  return other;
}

}  // namespace mtrace::reports
