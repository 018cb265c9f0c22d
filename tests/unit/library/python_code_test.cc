// Numbers of Python code objects, of made ones in memory that can be taken away.
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <random>
#include <string>
#include <vector>

#include "pages.h"
#include "python/code.h"

namespace mtrace::test {
namespace {

using unwind::kPythonLayouts;
using unwind::PythonAccess;
using unwind::PythonFileSeen;
using unwind::PythonRuntime;

template <typename T>
void put(char* object, size_t offset, T value) {
  memcpy(object + offset, &value, sizeof value);
}

void put_text(char* at, const std::string& text) {
  put<uint64_t>(at, unwind::kPythonSize, text.size());
  put<uint32_t>(at, unwind::kPythonTextState, unwind::kTextAscii);
  memcpy(at + kPythonLayouts[0].text_ascii, text.data(), text.size());
}

// A code object at `at`, named by its number, whose location table is `table`.
void put_code(char* at, unsigned number, char* file, char* table) {
  constexpr size_t kNameAt = 256;
  const unwind::PythonLayout& layout = kPythonLayouts[0];
  put_text(at + kNameAt, "function" + std::to_string(number));
  put<uint64_t>(at, unwind::kPythonSize, 100);
  put<uint32_t>(at, layout.code_first_line, number);
  put(at, layout.code_name, at + kNameAt);
  put(at, layout.code_file, file);
  put(at, layout.code_table, table);
}

// As many as a program has on its paths, wherever malloc has put them: each is read with the
// kernel's help once, and not again whenever another one that shares its place was met. When their
// location tables cannot be read any more, only those are known that need not be read again.
TEST(PythonCode, IsReadOnce) {
  constexpr size_t kSpace = 64u << 20, kObject = 512;
  constexpr unsigned kObjects = 96;
  const Guarded memory(kSpace), of_table(2 * kPage);
  char* const space = memory.start();
  char* const pages = of_table.start();
  // Its length is on one page, its bytes begin on the next.
  char* const table = pages + kPage - unwind::kPythonBytes;
  put<uint64_t>(table, unwind::kPythonSize, 40);
  put_text(space, "/srv/app.py");
  PythonRuntime python = {};
  python.layout = &kPythonLayouts[0];
  std::minstd_rand draw(17);
  std::vector<uintptr_t> objects;
  std::vector<bool> taken(kSpace / kObject);
  taken[0] = true;
  while (objects.size() < kObjects) {
    const size_t place = draw() % taken.size();
    if (taken[place]) continue;
    taken[place] = true;
    put_code(space + place * kObject, static_cast<unsigned>(objects.size()) + 1, space, table);
    objects.push_back(reinterpret_cast<uintptr_t>(space + place * kObject));
  }
  const auto number_of = [&](uintptr_t object) {
    PythonFileSeen none = {};
    return unwind::number_of_code(python, PythonAccess::kDirect, object, none);
  };
  std::vector<uint32_t> numbers;
  for (const uintptr_t object : objects) numbers.push_back(number_of(object));
  ASSERT_EQ(::mprotect(pages + kPage, kPage, PROT_NONE), 0);
  for (unsigned i = 0; i < kObjects; ++i) {
    ASSERT_NE(numbers[i], 0u);
    EXPECT_EQ(unwind::python_code(numbers[i])->first_line, i + 1);
    EXPECT_EQ(number_of(objects[i]), numbers[i]) << "code object " << i + 1 << " was read again";
  }
  // Another one at the same address is another one.
  ASSERT_EQ(::mprotect(pages + kPage, kPage, PROT_READ | PROT_WRITE), 0);
  put_code(reinterpret_cast<char*>(objects[0]), kObjects + 1, space, table);
  const uint32_t other = number_of(objects[0]);
  ASSERT_NE(other, 0u);
  EXPECT_NE(other, numbers[0]);
  EXPECT_EQ(unwind::python_code(other)->first_line, kObjects + 1);
}

}  // namespace
}  // namespace mtrace::test
