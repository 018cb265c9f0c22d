// Gives files to a fuzz target, in memory of their own size, and prints the path of each before.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::perror(argv[i]);
      return 1;
    }
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto bytes = std::make_unique<uint8_t[]>(text.size());
    std::memcpy(bytes.get(), text.data(), text.size());
    std::puts(argv[i]);
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(bytes.get(), text.size());
  }
}
