// The precompiled header of memlog (see the Makefile). Only headers of libraries; no file may
// depend on it.

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
