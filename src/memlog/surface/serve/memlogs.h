// The memlogs that memlog serve gives to other machines and takes from them.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "surface/fleet/arrival_names.h"
#include "surface/fleet/local_reports.h"
#include "surface/fleet/log_store.h"
#include "surface/fleet/store.h"
#include "surface/serve/http.h"
#include "surface/serve/routes.h"

namespace mtrace::serve {

class Memlogs {
 public:
  // `paths`: served files and directories. `store`: null: no memlogs are taken. `resolve`: those
  // that arrive are named. `names`: locked while names of those below the paths are looked up.
  Memlogs(std::vector<std::string> paths, const symbols::SearchPath& where, fleet::Store* store,
          bool resolve, std::mutex& names)
      : store_(store), names_(names), local_(std::move(paths), where) {
    if (store != nullptr) logs_.emplace(store->directory(), store->limits());
    if (resolve && store != nullptr) arrival_names_.emplace(*store, where);
  }

  // Once the server listens.
  void begin() {
    if (arrival_names_) arrival_names_->add_untried();
  }

  Response list(const Request& request);
  Response read(const Match& match);
  Response receive(const Request& request);
  Response append_log(const Request& request, const Match& match);

 private:
  using ByName = std::map<std::string, fleet::LocalReport>;

  void look_at_local();
  std::optional<std::string> packed_local(const std::string& name);

  fleet::Store* store_;
  std::optional<fleet::LogStore> logs_;
  std::optional<fleet::ArrivalNames> arrival_names_;
  std::mutex& names_;
  std::mutex mutex_;  // over what follows; taken before `names_`
  fleet::LocalReports local_;
  ByName found_;  // when local_ was last looked at
};

}  // namespace mtrace::serve
