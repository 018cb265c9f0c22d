#include "cli/watched_process.h"

#include <fmt/format.h>

#include <functional>
#include <stdexcept>

#include "profile/text.h"
#include "target/error.h"
#include "target/interruption.h"
#include "target/process.h"
#include "target/process_image.h"

namespace mtrace::cli {

WatchedProcess::WatchedProcess(const Arguments& arguments, const Streams& streams) {
  std::function<void(pid_t)> attach = [&](pid_t pid) {
    const std::string name = profile::escaped(target::process_name(pid), "");
    try {
      attachment_.emplace(pid);
    } catch (const target::AttachError& error) {
      throw std::runtime_error(
          fmt::format("{} ({}) is not traced, and {}", pid, name, error.what()));
    }
    complain(streams, fmt::format("attached to {} ({}), stopped for {:.1f} ms; detaches at the end",
                                  pid, name, target::milliseconds(attachment_->stopped())));
  };
  if (arguments.has("--no-attach")) attach = nullptr;
  target_.emplace(arguments.operands()[0], attach);
  if (attachment_) target::catch_interruption();
}

}  // namespace mtrace::cli
