// The ELF files that a process to be attached to runs, at the addresses where its loader lists
// them.
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
  std::string name;   // last component of its path
  std::string inode;  // as in Mapping
  symbolize::LoadedFile file;
  profile::Descriptor descriptor;
  bool is_loader = false;
  bool listed = false;    // by the loader; else executable memory that somebody else has mapped
  bool in_first = false;  // listed in the program's own namespace

  // Address of an exported function; 0: there is none of the name.
  uint64_t function(std::string_view name) const;
};

class TargetObjects {
 public:
  // Throws attach::AttachError when the process may not be looked at.
  explicit TargetObjects(pid_t pid);

  const std::vector<TargetObject>& all() const { return objects_; }
  // Where the list was read, and what it said: to compare once the process stands still.
  uint64_t r_debug() const { return r_debug_; }
  const std::vector<ListedObject>& list() const { return list_; }
  // Whether the process has a file mapped whose name contains `part`.
  bool maps(std::string_view part) const;
  // Whether the program was started by a loader.
  bool has_loader() const { return has_loader_; }

  // Throws attach::AttachError unless the object's headers in memory are those of its file.
  void require_same_file(const TargetObject& object) const;
  // Address of a function that a thread of the process is to call; 0: there is none of the name.
  // Throws unless it may be run there, and is in memory what it is in the file.
  uint64_t callable(const TargetObject& object, std::string_view name) const;
  // Whether the file is mapped there, to be read and run.
  bool is_code(const TargetObject& object, Range range) const;
  // What the file has at an address; empty: nothing.
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

// Of a path in /proc/PID/maps.
std::string mapped_name(const std::string& path);

}  // namespace mtrace::target
