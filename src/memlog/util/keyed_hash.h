// SipHash-2-4: Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012. Who does
// not know the key can neither compute it nor tell which text it is of.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mtrace::util {

using HashKey = std::array<unsigned char, 16>;

inline uint64_t keyed_hash(const HashKey& key, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t k[2];
  std::memcpy(k, key.data(), sizeof k);
  uint64_t v0 = k[0] ^ 0x736f6d6570736575u;
  uint64_t v1 = k[1] ^ 0x646f72616e646f6du;
  uint64_t v2 = k[0] ^ 0x6c7967656e657261u;
  uint64_t v3 = k[1] ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (; count != 0; --count) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  for (size_t at = 0; at <= text.size(); at += 8) {
    // The last word has what is left, and the length in its highest byte.
    uint64_t word = text.size() - at < 8 ? uint64_t{text.size()} << 56 : 0;
    if (at < text.size())
      std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace mtrace::util
