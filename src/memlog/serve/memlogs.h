// The memlogs that memlog serve gives to other machines and takes from them.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fleet/local_reports.h"
#include "fleet/store.h"
#include "serve/http.h"
#include "serve/routes.h"

namespace mtrace::serve {

class Memlogs {
 public:
  // `paths`: served files and directories. `store`: null: no memlogs are taken. `names`: locked
  // while names are looked up.
  Memlogs(std::vector<std::string> paths, symbolize::SearchPath where, fleet::Store* store,
          std::mutex& names)
      : store_(store), names_(names), local_(std::move(paths), std::move(where)) {}

  Response list(const Request& request);
  Response read(const Match& match);
  Response receive(const Request& request);

 private:
  using ByName = std::map<std::string, fleet::LocalReport>;

  void look_at_local();
  std::optional<std::string> packed_local(const std::string& name);

  fleet::Store* store_;
  std::mutex& names_;
  std::mutex mutex_;  // over what follows; taken before `names_`
  fleet::LocalReports local_;
  ByName found_;  // when local_ was last looked at
};

}  // namespace mtrace::serve
