// Holds blocks of known types at its end, and prints "BYTES BLOCKS TYPE" of each, with the sizes
// that the compiler knows.
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace app {

struct Session {
  long numbers[10];
};

// Containers that are never destroyed.
struct Held {
  std::list<double> list;
  std::map<int, Session> map;
  std::set<long> set;
  std::unordered_map<long, Session> table;
  std::vector<std::shared_ptr<Session>> shared;
  std::vector<std::unique_ptr<Session>> unique;
  std::vector<int> numbers;
  std::string text;
};

using Pair = std::pair<const int, Session>;
using HashPair = std::pair<const long, Session>;

void tell(size_t bytes, size_t blocks, const char* type) {
  std::printf("%zu %zu %s\n", bytes * blocks, blocks, type);
}

void fill(Held& held) {
  held.shared.reserve(5);
  held.unique.reserve(5);
  for (int i = 0; i < 5; ++i) {
    held.list.push_back(i);
    held.map[i] = {};
    held.set.insert(i);
    held.table[i] = {};
    held.shared.push_back(std::make_shared<Session>());
    held.unique.push_back(std::make_unique<Session>());
  }
  held.numbers.resize(100);
  held.text.assign(1000, 'x');
}

}  // namespace app

int main() {
  using namespace app;
  static char buffer[4096];
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  auto* const held = new Held;
  fill(*held);
  tell(sizeof(Held), 1, "in main");
  tell(sizeof(std::_List_node<double>), 5, "node of std::list<double>");
  tell(sizeof(std::_Rb_tree_node<Pair>), 5, "tree node of std::pair<int const, app::Session>");
  tell(sizeof(std::_Rb_tree_node<long>), 5, "tree node of long");
  tell(sizeof(std::__detail::_Hash_node<HashPair, false>), 5,
       "hash node of std::pair<long const, app::Session>");
  tell(held->table.bucket_count() * sizeof(void*), 1, "hash buckets");
  tell(sizeof(std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, __gnu_cxx::_S_atomic>), 5,
       "app::Session (make_shared)");
  tell(5 * sizeof(std::shared_ptr<Session>), 1, "std::vector<std::shared_ptr<app::Session>>");
  tell(5 * sizeof(std::unique_ptr<Session>), 1, "std::vector<std::unique_ptr<app::Session>>");
  tell(sizeof(Session), 5, "app::Session");
  tell(held->numbers.capacity() * sizeof(int), 1, "std::vector<int>");
  tell(held->text.capacity() + 1, 1, "std::string");
  return 0;
}
