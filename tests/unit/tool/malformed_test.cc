// What the reader refuses, and what it says then.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sample.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

// The sample with `line` in place of its line `number`; below 0: before line -`number`.
std::string with(int number, const std::string& line) {
  return number < 0 ? inserted(static_cast<size_t>(-number), line)
                    : replaced(static_cast<size_t>(number), line);
}

struct Refused {
  int number;  // as above
  std::string line;
  const char* error;  // behind the place
  int place = 0;      // 0: the line itself
};

void expect_refused(const std::vector<Refused>& all) {
  for (const auto& [number, line, error, place] : all) {
    EXPECT_EQ(error_of(with(number, line)),
              fmt::format("f:{}: {}", place == 0 ? std::abs(number) : place, error))
        << line;
  }
}

std::string cut_at(size_t bytes) { return join(kLines).substr(0, bytes); }

TEST(Malformed, Files) {
  const std::string foreign = "f:1: not a memlog: it does not begin with \"# memlog 2\"";
  const std::string program = "f:1: not a memlog, but a program: memlog run makes one of it";
  const std::string more = "; what comes before: memlog show --partial f";
  for (const auto& [text, error] : {
           std::pair{std::string(), std::string("f:1: not a memlog: the file is empty")},
           {"PK\x03\n", foreign},
           {"# memlog", foreign},
           {"\177ELF\n", program},
           {"#!/bin/sh\n", program},
           {without(31), "f:30: the file ends without \"# end\"" + more},
           {cut_at(join(kLines).size() - 1), "f:31: the last line is not complete" + more},
           {cut_at(70), "f:4: the last line is not complete"},
           {join(kLines) + "# end\n", "f:32: something follows \"# end\""},
           {join(kLines) + "\n", "f:32: something follows \"# end\""},
       }) {
    EXPECT_EQ(error_of(text), error) << text;
  }
  for (const char* version : {"3", "2 x", "2\r"}) {
    EXPECT_EQ(error_of(with(1, std::string("# memlog ") + version)),
              fmt::format("f:1: version \"{}\" of the format; this program reads versions 1 and 2",
                          version == std::string("2\r") ? "2\\x0d" : version));
  }
}

TEST(Malformed, Bytes) {
  expect_refused({
      {2, "# program: /usr/bin/app\r", "byte 24 is 0x0d, which must be escaped"},
      {4, std::string("# pid: 4\0", 9), "byte 9 is 0x00, which must be escaped"},
      {7, "# label: caf\xe9", "byte 13 is 0xe9, which must be escaped"},
      {7, "# label: \xc0\xaf", "byte 10 is 0xc0, which must be escaped"},
      {15, "\tf\x7f\t(0x1)", "byte 3 is 0x7f, which must be escaped"},
      {7, "# label: a\tb", "byte 11 is 0x09, which must be escaped"},
      {7, "# label: a\\qb", "a backslash that begins neither \\\\ nor \\xHH in \"a\\\\qb\""},
      {7, "# label: a\\x4", "a backslash that begins neither \\\\ nor \\xHH in \"a\\\\x4\""},
      {7, "# label: a\\x4A", "a backslash that begins neither \\\\ nor \\xHH in \"a\\\\x4A\""},
  });
}

TEST(Malformed, Lines) {
  expect_refused({
      {-14, "", "an empty line"},
      {-14, "hello", "neither a \"# key: value\" line, an entry nor a frame"},
      {7, "#label: x", "not a line of the form \"# key: value\""},
      {7, "# label x", "not a line of the form \"# key: value\""},
      {7, "# Label: x", "not a line of the form \"# key: value\""},
  });
}

// A key that the sample has not stands before the line.
TEST(Malformed, ValuesOfKeys) {
  const char* const time = "a time like 2026-11-20T20:15:31.123456Z";
  const char* const numbers = "a list of name=number";
  struct Key {
    int number;
    const char* key;
    const char* form;
    std::vector<const char*> values;
  };
  for (const auto& [number, key, form, values] : std::vector<Key>{
           {4, "pid", "a number from 1", {"0", "x", "+1", "0001", "99999999999999999999999"}},
           {5, "seq", "a number from 1", {"0"}},
           {6, "trigger", "a trigger like signal, exit or api", {""}},
           {8, "started", time, {"2026-11-20T20:15:00Z"}},
           {9, "taken", time, {"2026-13-20T20:15:31.123456Z"}},
           {10,
            "delta",
            "\"+N bytes +M blocks\"",
            {"60 bytes +2 blocks", "+60 +2", "-0 bytes +2 blocks",
             "+9223372036854775808 bytes +2 blocks"}},
           {11, "live", "\"N bytes M blocks\"", {"-1 bytes 0 blocks"}},
           {12,
            "peak",
            "\"N bytes TIME\"",
            {"5 bytes", "+5 bytes 2026-11-20T20:15:12.000412Z", "5 bytes 2026-11-20",
             "9223372036854775808 bytes 2026-11-20T20:15:12.000412Z",
             "5 bytes 2026-11-20T20:15:12.000412Z x"}},
           {13, "lost", numbers, {"frames=many"}},
           {13, "peak-error", "\"N bytes\"", {"5"}},
           {13, "sampled", "\"N bytes\"", {"512K"}},
           {13, "recording", "stopped", {"going on"}},
           {27, "host", "\"NAME boot-id=UUID arch=NAME\"", {"web3 x"}},
           {28, "rss", "\"N bytes\"", {"5 KiB"}},
           {29, "uptime", "\"N.NNN seconds\"", {"31 seconds"}},
           {28, "resolved", "no, partly or yes", {"maybe"}},
           {28,
            "kind",
            "\"NAME N bytes M blocks\"",
            {"mmap", "@mmap 5 bytes 1 blocks", "mmap +5 bytes +1 blocks", "mmap 5 bytes 1",
             " 5 bytes 1 blocks"}},
           {28, "heap", numbers, {"resident"}},
           {28,
            "region",
            "\"resident=N size=N NAME\"",
            {"malloc", "resident=+1 size=2 malloc", "size=2 resident=1 malloc",
             "resident=1 size=2 "}},
           {28, "calls", numbers, {"malloc=many", "malloc", "=5", "malloc=1  free=1", ""}},
           {28, "misuse", numbers, {"x=-1"}},
           {28, "failed-allocations", "a number", {"-1"}},
           {28, "unknown-frees", "a number", {"x"}},
           {28, "reports", "\"written=N failed=N\"", {"written=1", "failed=1 written=1"}},
           {28, "reports", numbers, {"written=x failed=1"}},
           {28, "rss-max", "\"N bytes\"", {"5"}},
           {28, "virtual", "\"N bytes\"", {"-5 bytes"}},
           {28, "resolution", "\"N.NNN ms\"", {"1.024", "1 ms", "1. ms", "1.x ms"}},
       }) {
    const std::string begin = fmt::format("# {}: ", key);
    const bool there = kLines[static_cast<size_t>(number) - 1].starts_with(begin);
    for (const char* value : values) {
      EXPECT_EQ(error_of(with(there ? number : -number, begin + value)),
                fmt::format("f:{}: {}: \"{}\" is not {}", number, key, value, form));
    }
  }
}

TEST(Malformed, KeysThatAreMissing) {
  for (const size_t number : {2, 4, 5, 6, 8, 9, 10, 11, 13}) {
    const std::string key = kLines[number - 1].substr(0, kLines[number - 1].find(':') + 1);
    EXPECT_EQ(error_of(without(number)), fmt::format("f:13: no \"{}\" before this line", key));
  }
  EXPECT_EQ(error_of("# memlog 2\n# end\n"), "f:2: no \"# program:\" before this line");
}

TEST(Malformed, KeysThatAreTwice) {
  for (const char* line :
       {"# calls: malloc=1", "# failed-allocations: 1", "# unknown-frees: 1", "# misuse: x=1",
        "# reports: written=1 failed=0", "# rss-max: 5 bytes", "# virtual: 5 bytes",
        "# resolution: 1.0 ms", "# host: web4 boot-id=x arch=y"}) {
    const std::string text = line;
    EXPECT_EQ(error_of(with(-30, text + '\n' + text)),
              fmt::format("f:{}: a second \"{}\"", text.starts_with("# host") ? 30 : 31,
                          text.substr(0, text.find(':') + 1)));
  }
  const std::string kind = "# kind: mmap 5 bytes 1 blocks";
  expect_refused({
      {-5, "# pid: 4711", "a second \"# pid:\""},
      {-13, "# peak: 5 bytes 2026-11-20T20:15:12.000412Z", "a second \"# peak:\""},
      {-28, kind + '\n' + kind, "kind: mmap stands there twice", 29},
      {13, "# lost: frames=0 frames=0", "lost: frames= stands there twice"},
      {-28, "# calls: new[]=1 new[]=2", "calls: new[]= stands there twice"},
      {-25, "# module: /usr/lib/libglib-2.0.so.0 base=0x0",
       "module: \"/usr/lib/libglib-2.0.so.0\" stands there twice"},
  });
}

TEST(Malformed, KeysAtTheWrongPlace) {
  for (const char* line : {"# seq: 3", "# peak: 5 bytes 2026-11-20T20:15:12.000412Z",
                           "# peak-error: 5 bytes", "# recording: stopped"}) {
    const std::string key(line, std::string_view(line).find(':') + 1);
    EXPECT_EQ(error_of(with(-24, line)),
              fmt::format("f:24: \"{}\" belongs before the entries", key));
  }
  expect_refused({
      {-4, "# region: resident=1 size=2 malloc", "\"# pid:\" belongs before the entries", 5},
      {-25, "-41\tblocks=+0\tlive=0\tstack=0000000000000002",
       "an entry after the lines that end the entries"},
  });
}

TEST(Malformed, Sums) {
  expect_refused({
      {10, "# delta: +61 bytes +2 blocks", "delta: the entries sum up to +60 bytes +2 blocks"},
      {10, "# delta: +60 bytes +3 blocks", "delta: the entries sum up to +60 bytes +2 blocks"},
      {12, "# allocated: 1893425 bytes 20417 blocks\n# freed: 5 bytes 0 blocks",
       "allocated: less freed: is not live:", 13},
      {-14, "+9223372036854775807\tblocks=+1\tlive=0\tstack=5f3e1a90c2d4b718",
       "the sum of the entries does not fit 64 bits", 15},
      {21, "+101\tblocks=-1\tlive=0\tstack=0000000000000001",
       "the entry is larger than the one before it"},
      {21, "-40\tblocks=-1\tlive=0\tstack=0000000000000001\tpeak=2441129",
       "peak= is more than the peak of the process"},
  });
}

TEST(Malformed, Entries) {
  const std::string stack = "\tstack=5f3e1a90c2d4b718";
  const char* const no_number = "is not a signed number of bytes of 64 bits";
  for (const char* bytes : {"+", "-0", "+9223372036854775808"}) {
    EXPECT_EQ(error_of(with(14, bytes + ("\tblocks=+3\tlive=1" + stack))),
              fmt::format("f:14: \"{}\" {}", bytes, no_number));
  }
  expect_refused({
      {14, "100\tblocks=+3\tlive=1" + stack,
       "neither a \"# key: value\" line, an entry nor a frame"},
      {14, "+100\tlive=1" + stack, "the entry has no blocks="},
      {14, "+100\tblocks=+3" + stack, "the entry has no live="},
      {14, "+100\tblocks=+3\tlive=1", "the entry has no stack="},
      {14, "+100\tblocks=3\tlive=1" + stack, "blocks=\"3\" is not a signed number of 64 bits"},
      {14, "+100\tblocks=+3\tlive=+1" + stack, "live=\"+1\" is not a number of bytes"},
      {14, "+100\tblocks=+3\tlive=1\tstack=5f3e", "stack=\"5f3e\" is not 16 hex digits"},
      {14, "+100\tblocks=+3\tlive=1\tstack=5F3E1A90C2D4B718",
       "stack=\"5F3E1A90C2D4B718\" is not 16 hex digits"},
      {14, "+100\tblocks=+3\tblocks=+3\tlive=1", "blocks= stands there twice"},
      {14, "+100\tblocks", "\"blocks\" is not key=value"},
      {14, "+100\t\tblocks=+3", "\"\" is not key=value"},
      {23, "@\t+1\tblocks=+1", "\"@\" is not a kind of entry"},
      {23, "@a b\t+1\tx=1", "\"@a b\" is not a kind of entry"},
      {23, "@mmap", "the kind is not followed by a number of bytes"},
      {23, "@mmap\t+1", "the entry has no field"},
  });
}

TEST(Malformed, FieldsOfEntries) {
  const std::string entry = "+100\tblocks=+3\tlive=126720\tstack=5f3e1a90c2d4b718\t";
  for (const std::string field : {"allocs", "temporary", "short-lived", "lifetime-min",
                                  "lifetime-mean", "lifetime-max", "age", "slack", "peak"}) {
    for (const char* value : {"+5", "-1", "05", "9223372036854775808", "1.5"}) {
      EXPECT_EQ(error_of(with(14, fmt::format("{}{}={}", entry, field, value))),
                fmt::format("f:14: {}=\"{}\" is not a number", field, value));
    }
    EXPECT_EQ(error_of(with(14, fmt::format("{}{}=5\t{}=5", entry, field, field))),
              fmt::format("f:14: {}= stands there twice", field));
  }
  const std::string freed = entry + "allocs=4\tallocated=101\tfrees=1\tfreed=1\t";
  const char* const order = "lifetime-min=, lifetime-mean= and lifetime-max= are not in this order";
  expect_refused({
      {14, entry + "allocs=4\tallocated=120\tfrees=1\tfreed=19",
       "allocs=, frees= and their bytes do not come to the entry's blocks and bytes"},
      {14, entry + "lifetime-max=5", "a lifetime without frees="},
      {14, freed + "lifetime-min=3\tlifetime-mean=2\tlifetime-max=5", order},
      {14, freed + "lifetime-mean=6\tlifetime-max=5", order},
      {14, freed + "lifetime-mean=6", order},
      {14, entry + "peak=2441129", "peak= is more than the peak of the process"},
  });
}

TEST(Malformed, Frames) {
  for (const char* place :
       {"x", "(/lib+0x1", "(+0x1)", "(/lib+0x)", "(0x01)", "(/lib+0x10000000000000000)", ""}) {
    EXPECT_EQ(error_of(with(15, std::string("\t") + place)),
              fmt::format("f:15: \"{}\" is not (MODULE+0xHEX), (0xHEX) or (inlined)", place));
  }
  const char* const inlined =
      "the inlined frame before this line is not followed by what it is part of";
  expect_refused({
      {-14, "\t(0x1)", "a frame without an entry"},
      {-28, "\t(0x1)", "a frame without an entry"},
      {-21, "\t(0x1)", "a frame after \"...\""},
      {-21, "\t...", "a frame after \"...\""},
      {15, "\ta\tb:1\tc\t(0x1)", "a frame of 4 fields: at most function, source and place"},
      {15, "\t\ta.c:1\t(0x1)", "the name of the function is empty"},
      {15, "\tf\ta.c\t(0x1)", "\"a.c\" is not FILE:LINE"},
      {15, "\tf\ta.c:0\t(0x1)", "\"a.c:0\" is not FILE:LINE"},
      {15, "\tf\t:7\t(0x1)", "\":7\" is not FILE:LINE"},
      {15, "\t(/lib#1+0x1)", "\"#1\" is not a module's generation (from 2)"},
      {15, "\t(/lib#x+0x1)", "\"#x\" is not a module's generation (from 2)"},
      {19, "\tf\t(inlined)", inlined, 20},
      {20, "\tf\t(inlined)", inlined, 21},
      {24, "# module: /usr/lib/libglib-2.0.so.0 build-id=5f1e", "module: has no base=0xHEX"},
      {24, "# module: /l build-id=5f1 base=0x0", "module: \"5f1\" is not a build-id"},
      {24, "# module: /l build-id=5f base=12", "module: \"12\" is not 0xHEX"},
  });
  EXPECT_EQ(error_of(small_memlog(std::vector<std::string>(257, "(0x1)"))),
            "f:268: a stack of more than 256 frames");
}

// The first stack ends with tail ...1, which ends with ...2.
TEST(Malformed, Tails) {
  const std::string first = "\t^ tail=0000000000000001";
  const std::string outer = "# tail: 0000000000000002\n\tmain\t(0x5)";
  const auto inner = [](const std::string& end = "\t^ tail=0000000000000002") {
    return "# tail: 0000000000000001\n\t(0x4)\n" + end;
  };
  std::string deep = "# tail: 0000000000000001";
  for (int i = 0; i < 257; ++i) deep += "\n\t(0x1)";
  const auto expect = [&](const std::string& end, const std::string& lines, const char* error) {
    auto all = kLines;
    all[19] = end;
    all[22] += "\n" + lines;
    EXPECT_EQ(error_of(join(all)), error);
  };
  expect(first, inner(), "f:34: no tail 0000000000000002, which a stack ends with");
  expect(first, inner(first), "f:34: a stack of more than 256 frames");
  expect(first, outer + "\n" + outer, "f:26: a tail that was there before");
  expect(first, deep, "f:281: a stack of more than 256 frames");
  expect(first, "# tail: 0000000000000001", "f:32: tail 0000000000000001 has no frame");
  expect(first + "\n\t(0x1)", inner() + "\n" + outer, "f:21: a frame after a tail");
  expect(first + "\n\t...", inner() + "\n" + outer, "f:21: a frame after a tail");
  expect(first, inner() + "\n" + outer + "\n@mmap\t+1\tblocks=+1",
         "f:29: an entry after the tails");
  expect_refused({
      {20, first, "no tail 0000000000000001, which a stack ends with", 31},
      {17, first, "the inlined frame before this line is not followed by what it is part of"},
      {22, first, "a tail without a frame before it"},
      {20, "\t^ tail=12", "a tail without 16 hex digits"},
      {-14, outer, "a tail that does not come directly behind the entries"},
      {-28, outer, "a tail that does not come directly behind the entries"},
  });
}

}  // namespace
}  // namespace mtrace::test
