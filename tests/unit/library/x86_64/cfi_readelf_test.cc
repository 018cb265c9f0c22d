// The interpreter against `readelf --debug-dump=frames-interp` for whole libraries as installed.
#include <gtest/gtest.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cfi/row.h"
#include "modules/object.h"
#include "shell.h"

namespace mtrace::unwind {
namespace {

constexpr const char* kRegisterNames[cfi::kRegisters] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                                         "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                                         "r12", "r13", "r14", "r15", "ra"};

std::string with_sign(int64_t value) { return (value < 0 ? "" : "+") + std::to_string(value); }

// A rule as readelf prints it.
std::string text_of(const cfi::RegisterRule& rule) {
  switch (rule.how) {
    case cfi::SavedBy::kUnspecified:
    case cfi::SavedBy::kUndefined:
      return "u";
    case cfi::SavedBy::kSameValue:
      return "s";
    case cfi::SavedBy::kOffset:
      return "c" + with_sign(rule.value);
    case cfi::SavedBy::kValOffset:
      return "v" + with_sign(rule.value);
    case cfi::SavedBy::kRegister:
      return kRegisterNames[rule.value];
    case cfi::SavedBy::kExpression:
      return "exp";
    case cfi::SavedBy::kValExpression:
      return "vexp";
  }
  return "?";
}

std::string cfa_of(const cfi::Row& row) {
  return row.cfa_by_expression ? "exp"
                               : kRegisterNames[row.cfa_register] + with_sign(row.cfa_offset);
}

struct Compared {
  size_t rows = 0;
  size_t different = 0;
  std::string first;
};

// Rows of one FDE in readelf's text, compared with ours. Of several for one address the last holds.
void compare_rows(const modules::Object& object, const std::vector<std::string>& columns,
                  const std::map<uintptr_t, std::vector<std::string>>& rows, uintptr_t end,
                  Compared* compared) {
  for (const auto& [address, cells] : rows) {
    if (address >= end) continue;
    const uintptr_t pc = object.base + address;
    std::ostringstream difference;
    cfi::Fde fde;
    cfi::Row row;
    if (!cfi::find_fde(object.bounds, object.eh_frame_hdr, pc, &fde) ||
        !cfi::find_row(object.bounds, fde, pc, &row)) {
      difference << " no row";
    } else {
      for (size_t i = 0; i < columns.size() && i < cells.size(); ++i) {
        std::string ours;
        if (columns[i] == "CFA") ours = cfa_of(row);
        for (unsigned reg = 0; reg < cfi::kRegisters; ++reg) {
          if (columns[i] != kRegisterNames[reg]) continue;
          ours = text_of(row.rules[reg]);
          // Some registers readelf names by their DWARF number only.
          if (row.rules[reg].how == cfi::SavedBy::kRegister &&
              cells[i] == "r" + std::to_string(row.rules[reg].value)) {
            ours = cells[i];
          }
        }
        if (!ours.empty() && ours != cells[i]) {
          difference << " " << columns[i] << ": " << ours << ", readelf " << cells[i];
        }
      }
    }
    ++compared->rows;
    if (difference.str().empty()) continue;
    if (compared->different++ == 0) {
      std::ostringstream text;
      text << std::hex << address << difference.str();
      compared->first = text.str();
    }
  }
}

Compared compare_with_readelf(const modules::Object& object, const std::string& path) {
  Compared compared;
  FILE* pipe = popen(
      ("LC_ALL=C readelf --debug-dump=frames-interp " + test::shell_quoted(path)).c_str(), "r");
  if (pipe == nullptr) return compared;
  std::vector<std::string> columns;
  std::map<uintptr_t, std::vector<std::string>> rows;
  uintptr_t end = 0;
  bool in_fde = false;
  char line[1024];
  while (fgets(line, sizeof line, pipe) != nullptr) {
    std::istringstream words(line);
    std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
    // A register that holds another is written twice: "r8 (r8)".
    std::erase_if(cells, [](const std::string& cell) { return cell[0] == '('; });
    const std::string text(line);
    if (const size_t range = text.find(" pc="); range != std::string::npos) {
      in_fde = true;
      rows.clear();
      columns.clear();
      end = strtoull(text.c_str() + text.find("..", range) + 2, nullptr, 16);
    } else if (text.find(" CIE ") != std::string::npos) {
      in_fde = false;
    } else if (!cells.empty() && cells[0] == "LOC") {
      columns.assign(cells.begin() + 1, cells.end());
    } else if (in_fde && cells.size() > 1 && cells[0].size() == 16) {
      rows[strtoull(cells[0].c_str(), nullptr, 16)] = {cells.begin() + 1, cells.end()};
    } else if (cells.empty() && in_fde) {
      compare_rows(object, columns, rows, end, &compared);
      rows.clear();
    }
  }
  pclose(pipe);  // its status is 1 also for a warning about a section that is not asked for
  return compared;
}

struct Loaded {
  std::string path;
  uintptr_t address;
};

class CfiAgainstReadelf : public testing::TestWithParam<const char*> {};

TEST_P(CfiAgainstReadelf, EveryRowIsEqual) {
  std::pair<const char*, Loaded> wanted{GetParam(), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto* wanted = static_cast<std::pair<const char*, Loaded>*>(argument);
        if (std::string(info->dlpi_name).find(wanted->first) == std::string::npos) return 0;
        wanted->second.path = info->dlpi_name;
        wanted->second.address = reinterpret_cast<uintptr_t>(info->dlpi_phdr);
        return 1;
      },
      &wanted);
  ASSERT_NE(wanted.second.path, "");
  modules::Object object;
  ASSERT_TRUE(locate_object(wanted.second.address, &object));
  modules::inspect_object(&object);
  const Compared compared = compare_with_readelf(object, wanted.second.path);
  EXPECT_GT(compared.rows, 1000u);
  EXPECT_EQ(compared.different, 0u) << "of " << compared.rows << ", first: " << compared.first;
}

INSTANTIATE_TEST_SUITE_P(Libraries, CfiAgainstReadelf,
                         testing::Values("libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2",
                                         "libm.so.6"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return isalnum(c) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace mtrace::unwind
