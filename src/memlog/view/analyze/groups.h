// Groups of stacks that one place in the program is responsible for.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

// Before the function that stands for blocks of unknown type.
inline constexpr char kInFunction[] = "in ";

// What the stacks of a group have in common.
enum class GroupBy : uint8_t {
  kStack,     // each stack is by itself
  kFunction,  // the responsible function; the instances of a template are one
  kFile,      // its source file; where that is unknown, its module
  kLine,      // the source line
  kModule,
  kType,  // what the blocks are (block_type.h); where that is unknown, the function
};

// Returns what a group is: "stack", "function", "file", "line", "module" or "type".
const char* group_word(GroupBy by);

// Collects groups in the order of their first stack.
class Groups {
 public:
  Groups(GroupBy by, ResponsiblePointer responsible)
      : by_(by), responsible_(std::move(responsible)) {}

  // Returns the number of the group of a stack, which counts as one more stack of it.
  // `name`: of the group; empty: by what is responsible.
  size_t place(const Row& row, const std::vector<profile::Module>& modules,
               const std::string& name = "");
  // By number. Group::source is the line while all stacks of the group are at one line, otherwise
  // the file.
  const std::vector<std::shared_ptr<Group>>& all() const { return groups_; }

 private:
  GroupBy by_;
  ResponsiblePointer responsible_;
  std::vector<std::shared_ptr<Group>> groups_;
  absl::flat_hash_map<std::string, size_t> known_;
};

// Adds up rows by group.
class GroupedTable {
 public:
  GroupedTable(GroupBy by, ResponsiblePointer responsible) : groups_(by, std::move(responsible)) {}

  // Throws std::runtime_error when a sum does not fit 64 bits.
  void add(const Table& table);
  // Returns a row for each group: Row::group and the numbers, no frames.
  Table finish();

 private:
  Groups groups_;
  std::vector<Row> rows_;
};

// Returns the groups of `table`; for kStack, the table itself.
Table grouped(Table table, GroupBy by, const ResponsiblePointer& responsible);

// Stacks as a tree: common frames are one node.

struct TreeNode {
  profile::Frame frame;  // names modules of the table
  bool cut = false;      // no frame: what is beyond the depth is unknown
  size_t depth = 0;      // with `cut`: that of a stack without own code (cut_text()); 0: any other
  size_t frames = 1;     // frames that this one stands for, itself among them
  Row sum;               // only numbers
  std::vector<std::unique_ptr<TreeNode>> children;
  size_t places = 0;  // no frame: number of small children folded into this node
};

struct TreeShape {
  Order order = Order::kBytes;
  bool inverted = false;  // false: from the allocation outward; true: from main inward
  // Folds stacks: they begin with the responsible frame. Null: all frames are nodes.
  const Responsible* responsible = nullptr;
  double threshold = 1.0;  // least size of a node, in percent of `whole`
  uint64_t peak = 0;       // of the process: 100 percent of Order::kPeak
};

struct Tree {
  TreeNode root;
  int64_t whole = 0;  // the value of 100 percent
};

// Makes the tree of the rows of `kind`. Frames are equal when function and source line agree, or,
// where these are unknown, module and function or offset. Children are sorted by the order's
// quantity; those below the threshold become one node at the end. `whole` is the sum of the
// positive rows or of the negative ones, whichever is further from 0; for age and lifetime, the
// largest value; for heap blocks at the peak, `shape.peak`. Throws std::runtime_error when a sum
// does not fit 64 bits.
Tree make_tree(const Table& table, const std::string& kind, const TreeShape& shape);

}  // namespace mtrace::analyze
