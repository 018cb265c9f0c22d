// Thread-local memory that must be in the part that threads have from the start.
namespace {
thread_local char bytes[1400] __attribute__((tls_model("initial-exec")));
}
extern "C" __attribute__((visibility("default"))) int touch_static(int value) {
  bytes[0] = bytes[1399] = static_cast<char>(value);
  return bytes[1399];
}
