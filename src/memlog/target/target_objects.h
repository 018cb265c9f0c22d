// The ELF files that a process runs, at the addresses in its loader's list.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/descriptor.h"
#include "symbolize/loaded_file.h"
#include "target/loader_list.h"
#include "target/mappings.h"
#include "target/object.h"
#include "target/target_memory.h"

namespace mtrace::target {

struct TargetObject {
  std::string name;   // last component of the path
  std::string inode;  // as in Mapping
  symbolize::LoadedFile file;
  profile::Descriptor descriptor;
  bool is_loader = false;
  bool listed = false;    // by the loader; false: executable memory that the program mapped by
                          // itself
  bool in_first = false;  // in the program's own namespace

  // Returns the address of an exported function; 0: no such function.
  uint64_t function(std::string_view name) const;
};

class TargetObjects {
 public:
  // Throws AttachError when the process may not be examined.
  explicit TargetObjects(pid_t pid);

  const std::vector<TargetObject>& all() const { return objects_; }
  // Where the list was read, and its content, to compare once the process is stopped.
  uint64_t r_debug() const { return r_debug_; }
  const std::vector<ListedObject>& list() const { return list_; }
  // Returns whether the process has mapped a file whose name contains `part`.
  bool maps(std::string_view part) const;
  // Returns whether a loader started the program.
  bool has_loader() const { return has_loader_; }

  // Throws AttachError unless the object's headers in memory equal those of its file.
  void require_same_file(const TargetObject& object) const;
  // Returns the address of a function for a thread of the process to call; 0: no such function.
  // Throws AttachError unless the address is executable and memory equals the file there.
  uint64_t callable(const TargetObject& object, std::string_view name) const;
  // Returns whether the file is mapped at `range`, readable and executable.
  bool is_code(const TargetObject& object, Range range) const;
  // Returns the file's bytes at an address; empty: it has none there.
  std::string file_bytes(const TargetObject& object, uint64_t address, size_t size) const;

 private:
  void read_list(pid_t pid, const StartFacts& facts);
  void add_listed(pid_t pid, const ListedObject& listed, uint64_t loader);
  void add_unlisted(pid_t pid);
  const Mapping* mapping_at(uint64_t address) const;

  std::vector<Mapping> mappings_;
  std::vector<ListedObject> list_;
  std::vector<TargetObject> objects_;
  TargetMemory memory_;
  uint64_t r_debug_ = 0;
  bool has_loader_ = false;
};

// Returns the file name of a path in /proc/PID/maps.
std::string mapped_name(const std::string& path);

}  // namespace mtrace::target
