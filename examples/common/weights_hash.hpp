#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "network_shape.hpp"

namespace example {

/// Of all parameters of a network, bit by bit. Source: G. Fowler, L. C. Noll, K.-P. Vo, FNV-1a, 64 bits.
template <class Network>
std::uint64_t hash_of(const Network& network) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (std::size_t n = 0; n < NetworkShape::layers; ++n) {
    const auto& parameters = network.parameters(n);
    for (const float parameter : parameters) {
      unsigned char bytes[sizeof parameter];
      std::memcpy(bytes, &parameter, sizeof parameter);
      for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3U;
    }
  }
  return hash;
}

}  // namespace example
