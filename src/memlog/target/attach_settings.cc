#include "target/attach_settings.h"

#include <unistd.h>

#include <climits>
#include <map>
#include <stdexcept>

#include "target/process.h"

namespace mtrace::target {

std::string attach_settings(pid_t pid, const std::vector<std::string>& changes) {
  std::map<std::string, std::string> settings;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("MTRACE_") && equals != std::string::npos) {
      settings[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  for (const std::string& setting : changes) {
    const size_t equals = setting.find('=');
    settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  std::string& output = settings["MTRACE_OUTPUT"];
  if (!output.starts_with('/')) {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) == nullptr) throw std::runtime_error("no working directory");
    // Double the percent signs: the value is a template.
    std::string directory;
    for (const char* p = here; *p != '\0'; ++p) directory += *p == '%' ? "%%" : std::string(1, *p);
    output = directory + '/' + (output == "." ? "" : output);
  }
  if (const auto temporary = start_environment(pid, "TMPDIR")) settings["TMPDIR"] = *temporary;
  std::string block;
  for (const auto& [name, value] : settings) {
    block.append(name).append(1, '=').append(value).append(1, '\0');
  }
  return block.append(1, '\0');
}

}  // namespace mtrace::target
