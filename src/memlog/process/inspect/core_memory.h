// The process that a core file was made of: its memory, its threads, its ledger.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/ledger/ledger_file.h"
#include "model/symbols/core_file.h"
#include "process/inspect/memory_view.h"
#include "util/file.h"

namespace mtrace::process {

// A core file lacks what a command needs of it. The text is "FILE: what is missing, what to do".
using symbols::CoreError;

class CoreMemory : public MemoryView {
 public:
  // `sysroot` is put before the paths of mapped files; empty: nothing. Throws CoreError, FileError.
  CoreMemory(const std::string& path, const std::string& sysroot);

  // Of memory that is not in the core file, mapped files are read in its place.
  void read(const std::vector<Range>& ranges, char* to) const override;
  int open_file(const Mapping& mapping) const override;

  const std::string& name() const { return name_; }
  uint64_t written() const { return written_; }  // nanoseconds since 1970
  // The threads, and what the ledger says of them.
  Snapshot snapshot(const format::LedgerHeader& header) const;
  // The ledger as the core file has it, else the file at `path`; empty: where the process had it.
  // Throws CoreError, LedgerError, FileError.
  std::unique_ptr<ledger::LedgerFile> ledger(const std::string& path) const;

  // Whether all of the bytes are known: in the core file, or in a mapped file that can be read.
  bool has(Range range) const;
  Missing missing() const override;

 private:
  struct Segment {
    symbols::CoreSegment in_core;
    int file = -1;             // mapped there; -1: none, or not readable
    uint64_t file_offset = 0;  // of its beginning
    std::string path;          // of the mapped file
  };
  void take_segment(const symbols::CoreSegment& segment, const symbols::CoreMappedFile* file);
  void take_segments();
  void mark_heap(std::vector<Mapping>& map) const;
  bool is_heap(Range range) const;
  void read_one(Range range, char* to) const;
  int dumped_ledger(const std::string& path) const;

  std::string name_;
  std::string sysroot_;
  util::Descriptor file_;
  uint64_t written_ = 0;
  symbols::CoreContents core_;
  std::map<std::string, util::Descriptor> files_;  // mapped ones by path; -1: not readable
  std::vector<Segment> segments_;                  // by address; each in one mapped file at most
};

}  // namespace mtrace::process
