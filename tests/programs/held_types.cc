// Blocks of known types, each held by a variable of known type. Prints "ready", and waits for its
// input to end. Each block is allocated by a function of its own, by which the test finds it.
#include <cstdio>
#include <cstdlib>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace app {

struct Payload {
  long numbers[4];
};

struct Session {
  long id;
  Payload* payload;
  void* anything;
};

struct Request {
  const char* name;
  Session* sessions[3];
};

union Either {
  Session* session;
  long number;
};

struct Base {
  virtual ~Base() = default;
  long tag = 0;
};
struct Derived : Base {
  Payload* hidden = nullptr;
};

// A block that only this function allocates, with a size of its own.
template <int kWhich>
[[gnu::noinline]] Payload* payload() {
  auto* made = static_cast<Payload*>(std::malloc(sizeof(Payload) + kWhich));
  asm volatile("" : "+r"(made));
  return made;
}

Session g_session;
Request* g_request;
std::map<int, Session> g_sessions;
std::vector<std::unique_ptr<Session>> g_vector;
std::unordered_map<long, Session*> g_table;
std::list<Session> g_list;
Either g_either;
void* g_anything;
Base* g_base;
std::forward_list<Session> g_forward;
std::map<int, Session, std::greater<int>> g_sorted;
Session* g_inner;
thread_local long t_before = 7;
thread_local Session* t_session;
alignas(64) thread_local char t_behind[100];

void fill() {
  g_session.payload = payload<1>();
  g_request = new Request{};
  g_request->sessions[2] = new Session{};
  g_request->sessions[2]->payload = payload<2>();
  for (int i = 0; i < 9; ++i) g_sessions[i] = {};
  g_sessions[4].payload = payload<3>();
  for (int i = 0; i < 3; ++i) g_vector.push_back(std::make_unique<Session>());
  g_vector[2]->payload = payload<4>();
  g_table[77] = new Session{};
  g_table[77]->payload = payload<5>();
  g_list.resize(3);
  g_list.back().payload = payload<6>();
  g_either.session = new Session{};
  g_either.session->payload = payload<7>();
  auto* through = new Session{};
  through->payload = payload<8>();
  g_anything = through;
  auto* derived = new Derived;
  derived->hidden = payload<9>();
  g_base = derived;
  g_forward.resize(2);
  g_forward.front().payload = payload<10>();
  static Session* s_static = new Session{};
  s_static->payload = payload<11>();
  // The pointer leads into the middle of a block.
  g_inner = reinterpret_cast<Session*>(new char[2 * sizeof(Session)]{}) + 1;
  g_inner->payload = payload<12>();
  t_session = new Session{};
  t_session->payload = payload<13>();
  g_sorted[1].payload = payload<14>();
  t_behind[0] = static_cast<char>(++t_before);
}

}  // namespace app

int main() {
  app::fill();
  std::puts("ready");
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 1;
}
