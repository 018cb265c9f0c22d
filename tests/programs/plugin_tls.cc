// Much thread-local memory, reached through the loader, which allocates it at its first use.
namespace {
thread_local int numbers[25000] __attribute__((tls_model("global-dynamic")));
}
extern "C" __attribute__((visibility("default"))) int touch_dynamic(int add) {
  numbers[0] += add;
  numbers[24999] = numbers[0];
  return numbers[24999];
}
