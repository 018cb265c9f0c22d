// Names the frames of reports that have arrived, for memlog serve --receive --resolve.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "model/symbols/module_symbols.h"
#include "surface/fleet/store.h"

namespace mtrace::fleet {

// A thread takes the reports, a batch at a time, and a child process names each batch: what comes
// from other machines is parsed there, within limits of memory and processor time, and what the
// symbolizer has cached is given back. A report that cannot be named stays as it arrived. All
// functions may be called from several threads.
class ArrivalNames {
 public:
  // `where`: modules are taken by build-id alone, since the paths are those of other machines.
  // `store` must outlive this.
  ArrivalNames(Store& store, symbols::SearchPath where);
  // Ends the naming at once; the next start names the rest.
  ~ArrivalNames();
  ArrivalNames(const ArrivalNames&) = delete;
  ArrivalNames& operator=(const ArrivalNames&) = delete;

  // Lets the report be named soon. While kMostWaiting others wait, it is left to the next start.
  void add(const ReportKey& key);

  // Adds the reports that earlier servers left. Not while another thread loads libraries: a child
  // of that moment cannot load any.
  void add_untried();

  static constexpr size_t kMostWaiting = 10'000;  // reports

 private:
  using Batch = std::vector<ReportKey>;

  Batch next();
  void work();
  void name(const Batch& batch);
  bool begin(const Batch& batch);
  void finish();
  void write_named(const Batch& batch) const;

  Store& store_;
  symbols::SearchPath where_;
  std::mutex mutex_;  // over what follows, but for the thread
  std::condition_variable changed_;
  std::deque<ReportKey> waiting_;
  bool over_ = false;
  pid_t child_ = 0;  // 0: none
  std::thread thread_;
};

}  // namespace mtrace::fleet
