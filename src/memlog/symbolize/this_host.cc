#include "symbolize/this_host.h"

#include <sys/utsname.h>

#include <fstream>

namespace mtrace::symbolize {

std::string this_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string this_host() {
  utsname names = {};
  return ::uname(&names) == 0 ? names.nodename : "";
}

bool taken_here(const profile::Header& header) {
  return !header.boot_id.empty() && header.boot_id == this_boot_id() && header.host == this_host();
}

}  // namespace mtrace::symbolize
