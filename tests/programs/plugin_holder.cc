// Keeps a pointer in thread-local storage that the loader makes when a thread first asks for it: by
// the dynamic model, since this library is loaded late.
namespace {
thread_local void* volatile t_pointer;
}  // namespace

extern "C" void hold_in_plugin(void* pointer) { t_pointer = pointer; }
