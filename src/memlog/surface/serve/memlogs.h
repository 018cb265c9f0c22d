// The memlogs that memlog serve gives to other machines and takes from them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "surface/fleet/transfer.h"
#include "surface/serve/http.h"
#include "surface/serve/routes.h"

namespace mtrace::serve {

class Memlogs {
 public:
  // `paths`: served files and directories. `store`: null: nothing is taken. `names`: locked while
  // names of those below the paths are looked up.
  Memlogs(std::vector<std::string> paths, const symbols::SearchPath& where,
          std::unique_ptr<fleet::Store> store, std::mutex& names)
      : store_(std::move(store)), names_(names), local_(std::move(paths), where) {}

  Response list(const Request& request);
  Response read(const Match& match);
  Response receive(const Request& request);
  Response append_log(const Request& request, const Match& match);

 private:
  std::unique_ptr<fleet::Store> store_;
  std::mutex& names_;
  std::mutex mutex_;  // over what follows; taken before `names_`
  fleet::LocalReports local_;
};

}  // namespace mtrace::serve
