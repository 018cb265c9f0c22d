// The benchmark's second program: allocates as two kinds of C programs do that compute. Tens of
// stacks of mixed depth meet at few call sites of malloc, and blocks live for microseconds. Prints
// nanoseconds of processor time for one pair of malloc and free.
//
//   paths numbers ROUNDS    arithmetic with numbers of many digits: products by Karatsuba's method,
//                           powers modulo a number, greatest common divisors
//   paths covers ROUNDS     complements of covers of cubes by recursion on one variable after the
//                           other, as programs that minimise logic functions do
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "calls.h"

#define NO_TAIL DISTINCT(tail)

namespace {

long g_pairs = 0;

// ---- numbers

// Digits to the base 2^32, the lowest first.
struct Number {
  unsigned used;
  uint32_t digits[];
};

NEST Number* number_new(unsigned digits) {
  ++g_pairs;
  auto* number = static_cast<Number*>(malloc(sizeof(Number) + digits * sizeof(uint32_t)));
  if (number == nullptr) abort();
  number->used = digits;
  NO_TAIL;
  return number;
}
NEST void number_free(Number* number) {
  free(number);
  NO_TAIL;
}

unsigned trimmed(const uint32_t* digits, unsigned count) {
  while (count > 0 && digits[count - 1] == 0) --count;
  return count;
}
void trim(Number* number) { number->used = trimmed(number->digits, number->used); }

int compare(const Number* a, const Number* b) {
  if (a->used != b->used) return a->used < b->used ? -1 : 1;
  for (unsigned i = a->used; i-- > 0;) {
    if (a->digits[i] != b->digits[i]) return a->digits[i] < b->digits[i] ? -1 : 1;
  }
  return 0;
}

NEST Number* copy_of(const Number* a) {
  Number* copy = number_new(a->used);
  memcpy(copy->digits, a->digits, a->used * sizeof(uint32_t));
  return copy;
}

NEST Number* part_of(const Number* a, unsigned from, unsigned to) {
  if (to > a->used) to = a->used;
  if (from > to) from = to;
  Number* part = number_new(to - from);
  memcpy(part->digits, a->digits + from, (to - from) * sizeof(uint32_t));
  trim(part);
  return part;
}

NEST Number* sum(const Number* a, const Number* b) {
  if (a->used < b->used) {
    const Number* swap = a;
    a = b;
    b = swap;
  }
  Number* result = number_new(a->used + 1);
  uint64_t carry = 0;
  for (unsigned i = 0; i < a->used; ++i) {
    carry += uint64_t{a->digits[i]} + (i < b->used ? b->digits[i] : 0);
    result->digits[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  result->digits[a->used] = static_cast<uint32_t>(carry);
  trim(result);
  return result;
}

// a - b of a >= b.
NEST Number* difference(const Number* a, const Number* b) {
  Number* result = number_new(a->used);
  int64_t borrow = 0;
  for (unsigned i = 0; i < a->used; ++i) {
    borrow += int64_t{a->digits[i]} - (i < b->used ? b->digits[i] : 0);
    result->digits[i] = static_cast<uint32_t>(borrow);
    borrow >>= 32;
  }
  trim(result);
  return result;
}

NEST Number* short_product(const Number* a, const Number* b) {
  Number* result = number_new(a->used + b->used);
  memset(result->digits, 0, result->used * sizeof(uint32_t));
  for (unsigned i = 0; i < a->used; ++i) {
    uint64_t carry = 0;
    for (unsigned j = 0; j < b->used; ++j) {
      carry += uint64_t{a->digits[i]} * b->digits[j] + result->digits[i + j];
      result->digits[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    result->digits[i + b->used] = static_cast<uint32_t>(carry);
  }
  trim(result);
  return result;
}

// result += a * 2^(32 * at)
void add_at(Number* result, const Number* a, unsigned at) {
  uint64_t carry = 0;
  for (unsigned i = 0; at + i < result->used && (i < a->used || carry != 0); ++i) {
    carry += uint64_t{result->digits[at + i]} + (i < a->used ? a->digits[i] : 0);
    result->digits[at + i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
}

NEST Number* product(const Number* a, const Number* b) {
  const unsigned longer = a->used > b->used ? a->used : b->used;
  if (a->used < 6 || b->used < 6) {
    Number* result = short_product(a, b);
    NO_TAIL;
    return result;
  }
  const unsigned half = longer / 2;
  Number* a0 = part_of(a, 0, half);
  Number* a1 = part_of(a, half, longer);
  Number* b0 = part_of(b, 0, half);
  Number* b1 = part_of(b, half, longer);
  Number* low = product(a0, b0);
  Number* high = product(a1, b1);
  Number* as = sum(a0, a1);
  Number* bs = sum(b0, b1);
  Number* both = product(as, bs);
  Number* ends = sum(low, high);
  Number* middle = difference(both, ends);
  Number* result = number_new(a->used + b->used + 1);
  memset(result->digits, 0, result->used * sizeof(uint32_t));
  add_at(result, low, 0);
  add_at(result, middle, half);
  add_at(result, high, 2 * half);
  trim(result);
  for (Number* each : {a0, a1, b0, b1, low, high, as, bs, both, ends, middle}) number_free(each);
  return result;
}

NEST Number* shifted(const Number* a, unsigned bits) {
  const unsigned words = bits / 32;
  const unsigned rest = bits % 32;
  Number* result = number_new(a->used + words + 1);
  memset(result->digits, 0, result->used * sizeof(uint32_t));
  for (unsigned i = 0; i < a->used; ++i) {
    const uint64_t digit = uint64_t{a->digits[i]} << rest;
    result->digits[i + words] |= static_cast<uint32_t>(digit);
    result->digits[i + words + 1] = static_cast<uint32_t>(digit >> 32);
  }
  trim(result);
  return result;
}

unsigned bits_of(const Number* a) {
  return a->used == 0 ? 0
                      : 32 * a->used - static_cast<unsigned>(__builtin_clz(a->digits[a->used - 1]));
}

// By subtraction of what is shifted to just below, several bits at a time.
NEST Number* remainder(const Number* a, const Number* b) {
  Number* rest = copy_of(a);
  while (compare(rest, b) >= 0) {
    const unsigned apart = bits_of(rest) - bits_of(b);
    Number* less;
    if (apart < 28) {
      less = shifted(b, apart);
      if (compare(rest, less) < 0) {
        number_free(less);
        less = shifted(b, apart - 1);
      }
    } else {
      const uint64_t top =
          (uint64_t{rest->digits[rest->used - 1]} << 32) | rest->digits[rest->used - 2];
      const uint64_t bits = top >> (64 - 24 - static_cast<unsigned>(__builtin_clzll(top)));
      const uint64_t by = b->digits[b->used - 1];
      const uint64_t below = (by << 32 | (b->used > 1 ? b->digits[b->used - 2] : 0)) >>
                             (64 - 12 - static_cast<unsigned>(__builtin_clzll(by << 32)));
      Number* factor = number_new(1);
      factor->digits[0] = static_cast<uint32_t>(bits / (below + 1)) >> 1;
      if (factor->digits[0] == 0) factor->digits[0] = 1;
      Number* times = product(b, factor);
      less = shifted(times, apart - 13);
      if (compare(rest, less) < 0) {
        number_free(less);
        less = shifted(b, apart - 1);
      }
      number_free(times);
      number_free(factor);
    }
    Number* next = difference(rest, less);
    number_free(less);
    number_free(rest);
    rest = next;
  }
  return rest;
}

NEST Number* product_modulo(const Number* a, const Number* b, const Number* modulus) {
  Number* whole = product(a, b);
  Number* result = remainder(whole, modulus);
  number_free(whole);
  return result;
}

NEST Number* power_modulo(const Number* base, const Number* exponent, const Number* modulus) {
  Number* result = number_new(1);
  result->digits[0] = 1;
  Number* square = remainder(base, modulus);
  for (unsigned bit = 0; bit < bits_of(exponent); ++bit) {
    if ((exponent->digits[bit / 32] >> bit % 32 & 1) != 0) {
      Number* next = product_modulo(result, square, modulus);
      number_free(result);
      result = next;
    }
    Number* next = product_modulo(square, square, modulus);
    number_free(square);
    square = next;
  }
  number_free(square);
  return result;
}

NEST Number* common_divisor(const Number* a, const Number* b) {
  Number* result;
  if (b->used == 0) {
    result = copy_of(a);
  } else {
    Number* rest = remainder(a, b);
    result = common_divisor(b, rest);
    number_free(rest);
  }
  NO_TAIL;
  return result;
}

NEST Number* random_number(Random& random, unsigned digits) {
  Number* number = number_new(digits);
  for (unsigned i = 0; i < digits; ++i) number->digits[i] = random() | 1;
  return number;
}

NEST void work_with_numbers(Random& random) {
  Number* modulus = random_number(random, 8);
  Number* base = random_number(random, 8);
  Number* exponent = random_number(random, 1);
  Number* power = power_modulo(base, exponent, modulus);
  Number* divisor = common_divisor(modulus, power);
  Number* large = random_number(random, 12);
  Number* square = product(large, large);
  Number* rest = remainder(square, modulus);
  for (Number* each : {modulus, base, exponent, power, divisor, large, square, rest}) {
    number_free(each);
  }
}

// ---- covers

// A cube: for each variable whether it may be 0 and whether it may be 1. A cover: a list of cubes.
constexpr unsigned kVariables = 24;
struct Cube {
  Cube* next;
  uint64_t zeros;
  uint64_t ones;
  uint64_t weight;
};
struct Cover {
  Cube* first;
  unsigned count;
};

NEST void* set_new(size_t size) {
  ++g_pairs;
  void* set = malloc(size);
  if (set == nullptr) abort();
  NO_TAIL;
  return set;
}
NEST void set_free(void* set) {
  free(set);
  NO_TAIL;
}

NEST Cover* cover_new() {
  auto* cover = static_cast<Cover*>(set_new(sizeof(Cover)));
  *cover = {};
  return cover;
}
NEST void cover_add(Cover* cover, uint64_t zeros, uint64_t ones) {
  auto* cube = static_cast<Cube*>(set_new(sizeof(Cube) + cover->count % 8 * 16));
  *cube = {cover->first, zeros, ones, 0};
  cover->first = cube;
  ++cover->count;
}
NEST void cover_free(Cover* cover) {
  for (Cube* cube = cover->first; cube != nullptr;) {
    Cube* next = cube->next;
    set_free(cube);
    cube = next;
  }
  set_free(cover);
}

constexpr uint64_t kAll = (uint64_t{1} << kVariables) - 1;

// The cubes of the cover in which the variable may have the value, freed of it.
NEST Cover* cofactor(const Cover* cover, unsigned variable, bool value) {
  Cover* result = cover_new();
  const uint64_t bit = uint64_t{1} << variable;
  for (const Cube* cube = cover->first; cube != nullptr; cube = cube->next) {
    if (((value ? cube->ones : cube->zeros) & bit) == 0) continue;
    cover_add(result, cube->zeros | bit, cube->ones | bit);
  }
  return result;
}

// The variable on which most cubes depend.
NEST unsigned choose(const Cover* cover) {
  auto* counts = static_cast<unsigned*>(set_new(kVariables * sizeof(unsigned)));
  memset(counts, 0, kVariables * sizeof(unsigned));
  for (const Cube* cube = cover->first; cube != nullptr; cube = cube->next) {
    for (uint64_t bits = ~(cube->zeros & cube->ones) & kAll; bits != 0; bits &= bits - 1) {
      ++counts[__builtin_ctzll(bits)];
    }
  }
  unsigned best = 0;
  for (unsigned i = 1; i < kVariables; ++i) {
    if (counts[i] > counts[best]) best = i;
  }
  set_free(counts);
  return best;
}

NEST void add_literal(Cover* to, const Cover* from, unsigned variable, bool value) {
  const uint64_t bit = uint64_t{1} << variable;
  for (const Cube* cube = from->first; cube != nullptr; cube = cube->next) {
    cover_add(to, value ? cube->zeros & ~bit : cube->zeros, value ? cube->ones : cube->ones & ~bit);
  }
}

NEST Cover* complement_of_one(const Cover* cover) {
  Cover* result = cover_new();
  const Cube* cube = cover->first;
  for (uint64_t bits = ~(cube->zeros & cube->ones) & kAll; bits != 0; bits &= bits - 1) {
    const uint64_t bit = bits & -bits;
    const bool one = (cube->ones & bit) != 0;
    cover_add(result, one ? kAll : kAll & ~bit, one ? kAll & ~bit : kAll);
  }
  return result;
}

NEST Cover* complement(const Cover* cover) {
  Cover* result;
  if (cover->count == 0) {
    result = cover_new();
    cover_add(result, kAll, kAll);
  } else if (cover->count == 1) {
    result = complement_of_one(cover);
  } else {
    const unsigned variable = choose(cover);
    Cover* sides[2];
    for (int value = 0; value < 2; ++value) {
      Cover* part = cofactor(cover, variable, value != 0);
      // One that depends on nothing covers everything.
      bool all = false;
      for (const Cube* cube = part->first; cube != nullptr; cube = cube->next) {
        all |= (cube->zeros & cube->ones & kAll) == kAll;
      }
      sides[value] = all ? cover_new() : complement(part);
      cover_free(part);
    }
    result = cover_new();
    add_literal(result, sides[0], variable, false);
    add_literal(result, sides[1], variable, true);
    cover_free(sides[0]);
    cover_free(sides[1]);
  }
  NO_TAIL;
  return result;
}

NEST void work_with_covers(Random& random) {
  Cover* cover = cover_new();
  for (int i = 0; i < 14; ++i) {
    uint64_t zeros = kAll;
    uint64_t ones = kAll;
    for (int literals = 0; literals < 5; ++literals) {
      const uint64_t bit = uint64_t{1} << random() % kVariables;
      if ((zeros & ones & bit) == 0) continue;
      (random() % 2 == 0 ? zeros : ones) &= ~bit;
    }
    cover_add(cover, zeros, ones);
  }
  Cover* other = complement(cover);
  cover_free(other);
  cover_free(cover);
}

double processor_time() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  void (*work)(Random&) = nullptr;
  if (argc == 3 && strcmp(argv[1], "numbers") == 0) work = work_with_numbers;
  if (argc == 3 && strcmp(argv[1], "covers") == 0) work = work_with_covers;
  if (work == nullptr || atol(argv[2]) <= 0) {
    fputs("paths numbers|covers ROUNDS\n", stderr);
    return 2;
  }
  Random random{0x9e3779b97f4a7c15u};
  const double begin = processor_time();
  for (long round = 0; round < atol(argv[2]); ++round) work(random);
  printf("%.2f\n", (processor_time() - begin) / static_cast<double>(g_pairs));
  return 0;
}
