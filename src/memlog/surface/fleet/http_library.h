// cpp-httplib as Debian's library was built: the layout of its classes depends on these words, and
// both halves of memlog-http.so must have the same.
#pragma once

#define CPPHTTPLIB_OPENSSL_SUPPORT
#define CPPHTTPLIB_ZLIB_SUPPORT
#define CPPHTTPLIB_BROTLI_SUPPORT
#include <httplib.h>
