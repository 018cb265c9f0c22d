// Holds blocks of known types. Prints "BYTES BLOCKS TYPE" of each, with "class" in front where the
// object has a virtual table, then "ready", and waits for the end of its input.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace app {

struct Shape {
  virtual ~Shape() = default;
  virtual long area() const { return 0; }
  long numbers[3] = {};
};
struct Circle : Shape {
  long area() const override { return radius; }
  long radius = 1;
};
struct Named {
  virtual ~Named() = default;
  virtual const char* name() const { return "named"; }
};
// The second virtual table is not that of an object's beginning.
struct Button final : Circle, Named {
  const char* name() const override { return "button"; }
};
struct Session {
  long numbers[10];
};

constexpr int kShapes = 300;
constexpr int kCircles = 200;
constexpr int kOthers = 20;
Shape* shapes[kShapes];
Circle* circles[kCircles];
Button* buttons[kOthers];
std::shared_ptr<Session> sessions[kOthers];
std::vector<int> vectors[kOthers];
void* plain[kOthers];
void* lookalikes[4];

[[gnu::noinline]] void* plain_block(size_t size) {
  void* block = std::malloc(size);
  asm volatile("" : "+r"(block));
  return block;
}
[[gnu::noinline]] void* lookalike(const void* first) {
  auto* block = static_cast<const void**>(std::calloc(1, 1000));
  *block = first;
  asm volatile("" : "+r"(block));
  return block;
}

// As a table of functions of C begins, behind two zeros.
const void* const functions[] = {nullptr, nullptr, "text", nullptr};

void tell(size_t bytes, size_t blocks, const char* type) {
  std::printf("%zu %zu %s\n", bytes * blocks, blocks, type);
}

void fill() {
  for (Shape*& one : shapes) one = new Shape;
  for (Circle*& one : circles) one = new Circle;
  for (int i = 0; i < kOthers; ++i) {
    buttons[i] = new Button;
    sessions[i] = std::make_shared<Session>();
    vectors[i].reserve(100);
    plain[i] = plain_block(500);
  }
  // Into the tables: not where an object's pointer leads, and that of Named in Button.
  const auto* table = *reinterpret_cast<void***>(shapes[0]);
  lookalikes[0] = lookalike(table + 1);
  lookalikes[1] = lookalike(*reinterpret_cast<void***>(static_cast<Named*>(buttons[0])));
  lookalikes[2] = lookalike(functions + 2);
  lookalikes[3] = lookalike(reinterpret_cast<const void*>(&tell));
  for (int i = 0; i < 10; ++i) {
    delete shapes[i];
    shapes[i] = nullptr;
  }
}

}  // namespace app

int main() {
  using namespace app;
  static char buffer[4096];
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  fill();
  tell(sizeof(Shape), kShapes - 10, "class app::Shape");
  tell(sizeof(Circle), kCircles, "class app::Circle");
  tell(sizeof(Button), kOthers, "class app::Button");
  tell(sizeof(std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, __gnu_cxx::_S_atomic>),
       kOthers, "class app::Session (make_shared)");
  tell(100 * sizeof(int), kOthers, "std::vector<int>");
  tell(500, kOthers, "in app::plain_block");
  tell(1000, 4, "in app::lookalike");
  std::puts("ready");
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 1;
}
