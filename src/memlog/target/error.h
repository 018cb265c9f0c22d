// Why a process cannot be attached to or detached from.
#pragma once

#include <stdexcept>

namespace mtrace::target {

// What is in the way, as a sentence without subject and period: "is traced by process 17".
struct AttachError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A call of the library that has come back with an error: another way to it would have the same.
struct CallFailed : AttachError {
  using AttachError::AttachError;
};

}  // namespace mtrace::target
