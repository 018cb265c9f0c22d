// heap_shapes SHAPE MIB: about MIB MiB of live blocks, all reachable, in one of these shapes:
//   mixed    blocks of 16 to 4096 bytes, and a few of up to 1 MiB, held by tables of pointers
//   list     one std::list of numbers
//   shuffled a list whose nodes follow each other in no order of addresses
//   map      one std::unordered_map of numbers to strings
// Prints "ready BLOCKS BYTES" as far as it knows them, and waits for the end of its input.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

uint64_t blocks = 0;
uint64_t bytes = 0;

// Text and numbers as programs have them, and in every eighth word a pointer.
void fill(char* block, size_t size, std::mt19937& random, const std::vector<char*>& others) {
  memset(block, static_cast<int>('a' + random() % 26), size);
  for (size_t at = 0; at + 8 <= size; at += 64) {
    const char* other = others.empty() ? nullptr : others[random() % others.size()];
    memcpy(block + at, static_cast<void*>(&other), sizeof other);
  }
}

size_t mixed_size(std::mt19937& random) {
  const unsigned kind = random() % 1000;
  if (kind == 0) return 16384 + random() % (1 << 20);
  return kind < 700 ? 16 + random() % 240 : 256 + random() % 3840;
}

std::vector<char*> held;
std::list<uint64_t> numbers;
std::unordered_map<uint64_t, std::string> names;
struct Node {
  Node* next;
  uint64_t number[3];
};
Node* first = nullptr;

void make_mixed(uint64_t wanted) {
  std::mt19937 random(1);
  while (bytes < wanted) {
    const size_t size = mixed_size(random);
    auto* const block = static_cast<char*>(malloc(size));
    fill(block, size, random, held);
    held.push_back(block);
    bytes += size;
    ++blocks;
  }
}

void make_list(uint64_t wanted) {
  for (; bytes < wanted; bytes += 24, ++blocks) numbers.push_back(bytes);
}

void make_shuffled(uint64_t wanted) {
  std::vector<Node*> nodes;
  for (; bytes < wanted; bytes += sizeof(Node), ++blocks) nodes.push_back(new Node());
  std::mt19937 random(1);
  for (size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random() % i]);
  for (Node* node : nodes) {
    node->next = first;
    first = node;
  }
}

void make_map(uint64_t wanted) {
  constexpr uint64_t kEntry = 48 + 41;  // bytes of a node and of its string
  for (uint64_t i = 0; bytes < wanted; ++i, bytes += kEntry, blocks += 2) {
    names.emplace(i * 2654435761u, std::string(40, static_cast<char>('a' + i % 26)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string shape = argv[1];
  const uint64_t wanted = strtoull(argv[2], nullptr, 10) << 20;
  if (shape == "mixed") make_mixed(wanted);
  if (shape == "list") make_list(wanted);
  if (shape == "shuffled") make_shuffled(wanted);
  if (shape == "map") make_map(wanted);
  printf("ready %lu %lu\n", static_cast<unsigned long>(blocks), static_cast<unsigned long>(bytes));
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
