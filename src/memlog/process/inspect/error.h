// Errors of attaching and detaching.
#pragma once

#include <stdexcept>

namespace mtrace::process {

// The text says what is in the way, as a sentence without subject or period: "is traced by process
// 17".
struct AttachError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A call of the library returned an error. Another way to the same call would fail, too.
struct CallFailed : AttachError {
  using AttachError::AttachError;
};

// The process cannot be copied by fork.
struct NotCopied : CallFailed {
  using CallFailed::CallFailed;
};

// A signal could kill the process.
struct SignalKills : AttachError {
  using AttachError::AttachError;
};

// The process was started with the library, which is there to stay.
struct Preloaded : AttachError {
  using AttachError::AttachError;
};

}  // namespace mtrace::process
