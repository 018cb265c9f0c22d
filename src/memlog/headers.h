// What memlog is precompiled with (see the Makefile): headers of libraries only, and no file may
// lean on it.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
