// Lines of Python code objects against the interpreter's own, and the layout of its structures
// against its headers.
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "format/python.h"
#include "python/layout.h"
#include "python/text.h"
#include "shell.h"

namespace mtrace::test {
namespace {

using format::PythonFrame;
using format::PythonLines;

// Every code object of some forty modules of the standard library.
TEST(PythonLines, AreTheInterpretersOwn) {
  constexpr char kScript[] = R"TEXT(
import asyncio, ast, argparse, collections, ctypes, dataclasses, decimal, difflib, email.message
import enum, fractions, functools, heapq, http.client, inspect, json, logging, optparse, pdb, pickle
import pprint, random, re, shutil, socket, statistics, string, subprocess, sys, tarfile, tempfile
import textwrap, threading, tokenize, traceback, types, typing, unittest.mock, urllib.request
import xml.dom.minidom, zipfile, importlib.util
def all_of(code):
  yield code
  for constant in code.co_consts:
    if isinstance(constant, types.CodeType): yield from all_of(constant)
for module in list(sys.modules.values()):
  spec = getattr(module, "__spec__", None)
  code = spec and spec.loader and getattr(spec.loader, "get_code", None)
  code = code and code(spec.name)
  for one in all_of(code) if code else ():
    lines = [0] * (len(one.co_code) // 2)
    for start, end, line in one.co_lines():
      for at in range(start, end, 2): lines[at // 2] = line or 0
    print(one.co_firstlineno, one.co_linetable.hex(), *lines)
)TEXT";
  std::istringstream stream(shell("/usr/bin/python3 -c {}", std::string_view(kScript)));
  size_t objects = 0;
  for (std::string line; std::getline(stream, line); ++objects) {
    std::istringstream words(line);
    uint32_t first = 0;
    std::string hex;
    words >> first >> hex;
    std::vector<unsigned char> table;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      table.push_back(static_cast<unsigned char>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    }
    const auto line_of = [&](int32_t instruction) {
      return PythonLines(table.data(), table.size(), first).line_of(instruction);
    };
    EXPECT_EQ(line_of(-1), first);
    uint32_t expected = 0;
    int32_t instruction = 0;
    for (; words >> expected; ++instruction) ASSERT_EQ(line_of(instruction), expected) << line;
    EXPECT_EQ(line_of(instruction), 0u);
  }
  EXPECT_GT(objects, 3000u);
}

// Whatever a table holds, a look ends and stays inside it.
TEST(PythonLines, AnyBytes) {
  uint64_t state = 1;
  for (int turn = 0; turn < 20'000; ++turn) {
    std::vector<unsigned char> table(turn % 40);
    for (unsigned char& byte : table)
      byte = static_cast<unsigned char>(state = format::mix64(state + 1));
    for (const int32_t instruction : {-1, 0, 1, 7, 100, PythonFrame::kMostInstructions}) {
      PythonLines lines(table.data(), table.size(), 0x7fffffff);
      EXPECT_LE(lines.line_of(instruction), 0x7fffffffu);
    }
  }
}

TEST(PythonFrames, AreNoAddresses) {
  for (const uint32_t code : {0u, 1u, format::kMostPythonCode}) {
    for (const int32_t instruction : {-1, 0, PythonFrame::kMostInstructions}) {
      const uint64_t frame = PythonFrame::pack(code, instruction);
      EXPECT_TRUE(PythonFrame::is_one(frame));
      EXPECT_EQ(PythonFrame::code(frame), code);
      EXPECT_EQ(PythonFrame::instruction(frame), instruction);
      // As the stack table keeps it.
      EXPECT_EQ(static_cast<uint64_t>(static_cast<int64_t>(frame << 16) >> 16), frame);
    }
  }
  for (const uint64_t address : {0x0ul, 0x400000ul, 0x7ffffffffffful, 0xffffffffff600000ul, ~0ul}) {
    EXPECT_FALSE(PythonFrame::is_one(address)) << address;
  }
}

TEST(PythonText, Utf8) {
  const auto encoded = [](uint32_t character) {
    char bytes[4];
    return std::string(bytes, unwind::put_utf8(character, bytes));
  };
  EXPECT_EQ(encoded('a') + encoded(0xdf) + encoded(0x20ac) + encoded(0x1f40d), "aß€🐍");
  alignas(8) const char text[] = "0123456789abcdef", other[] = "0123456789abcdeg";
  for (size_t size = 0; size < 16; ++size) EXPECT_TRUE(unwind::same_bytes(text, other, size));
  EXPECT_FALSE(unwind::same_bytes(text, other, 16));
}

// A file for the compiler that breaks unless the offsets are those of the headers of a version.
void expect_headers(const unwind::PythonLayout& layout, const std::string& include) {
  std::ostringstream source;
  source << "#define Py_BUILD_CORE 1\n#include <Python.h>\n#include <internal/pycore_runtime.h>\n"
            "#include <internal/pycore_frame.h>\n#include <stddef.h>\n";
  const auto expect = [&](const char* what, unsigned value) {
    source << "_Static_assert(" << what << " == " << value << ", \"\");\n";
  };
  expect("PY_VERSION_HEX >> 16", layout.version);
  expect("offsetof(_PyRuntimeState, _finalizing)", layout.finalizing);
  expect("offsetof(PyThreadState, cframe)", layout.state_cframe);
  expect("offsetof(_PyCFrame, current_frame)", layout.cframe_frame);
  expect("offsetof(_PyCFrame, previous)", layout.cframe_previous);
  expect("offsetof(_PyInterpreterFrame, f_code)", layout.frame_code);
  expect("offsetof(_PyInterpreterFrame, previous)", layout.frame_previous);
  expect("offsetof(_PyInterpreterFrame, prev_instr)", layout.frame_instruction);
  expect(layout.entry_is_empty ? "offsetof(_PyInterpreterFrame, owner)"
                               : "offsetof(_PyInterpreterFrame, is_entry)",
         layout.frame_entry);
  expect(layout.entry_is_empty ? "FRAME_OWNED_BY_CSTACK" : "true", layout.entry_mark);
  expect("offsetof(_PyInterpreterFrame, localsplus)", layout.frame_bytes);
  expect("offsetof(PyCodeObject, co_firstlineno)", layout.code_first_line);
  expect("offsetof(PyCodeObject, co_filename)", layout.code_file);
  expect("offsetof(PyCodeObject, co_qualname)", layout.code_name);
  expect("offsetof(PyCodeObject, co_linetable)", layout.code_table);
  expect("offsetof(PyCodeObject, co_code_adaptive)", layout.code_instructions);
  expect("sizeof(PyASCIIObject)", layout.text_ascii);
  expect("sizeof(PyCompactUnicodeObject)", layout.text_other);
  expect("offsetof(PyObject, ob_type)", unwind::kPythonType);
  expect("offsetof(PyTypeObject, tp_basicsize)", unwind::kPythonTypeBasicSize);
  expect("offsetof(PyTypeObject, tp_dealloc)", unwind::kPythonTypeFree);
  expect("offsetof(PyVarObject, ob_size)", unwind::kPythonSize);
  expect("offsetof(PyASCIIObject, length)", unwind::kPythonSize);
  expect("offsetof(PyASCIIObject, state)", unwind::kPythonTextState);
  expect("offsetof(PyBytesObject, ob_sval)", unwind::kPythonBytes);
  expect("sizeof(_Py_CODEUNIT)", unwind::kPythonInstruction);
  const std::string path = testing::TempDir() + "/python_layout.c";
  std::ofstream(path) << source.str();
  shell("gcc -fsyntax-only -I{} {}", include, path);
  remove(path.c_str());
}

// Of each version whose headers are installed; Debian 12 has those of 3.11.
TEST(PythonLayout, IsThatOfTheHeaders) {
  unsigned compared = 0;
  for (const unwind::PythonLayout& layout : unwind::kPythonLayouts) {
    const std::string include = "/usr/include/python3." + std::to_string(layout.version & 0xff);
    if (::access((include + "/Python.h").c_str(), R_OK) != 0) continue;
    expect_headers(layout, include);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

// The words that CPython 3.13 has at the start of _PyRuntime: each has to be what it is.
TEST(PythonLayout, OffsetsThatAreTold) {
  constexpr uint32_t kVersion = 0x030d05f0;
  std::vector<uint64_t> good(unwind::kPythonExportedWords);
  memcpy(good.data(), "xdebugpy", 8);
  good[1] = kVersion;
  // Finalizing thread, current frame; frame: previous, executable, instruction, owner; code: file,
  // name, qualified name, table, first line, instructions; then heads of objects.
  const std::pair<unsigned, uint64_t> kTold[] = {
      {4, 608},  {23, 72}, {29, 8},   {30, 0}, {31, 56}, {33, 70}, {35, 112}, {36, 120}, {37, 128},
      {38, 136}, {39, 68}, {43, 200}, {45, 8}, {65, 16}, {66, 32}, {68, 32},  {69, 16},  {70, 40}};
  for (const auto& [word, value] : kTold) good[word] = value;
  unwind::PythonLayout layout;
  ASSERT_TRUE(unwind::exported_layout(good.data(), kVersion, &layout));
  EXPECT_EQ(layout.frame_bytes, 71u);
  EXPECT_EQ(layout.code_table, 136u);
  EXPECT_EQ(layout.text_other, 56u);
  EXPECT_FALSE(unwind::exported_layout(good.data(), kVersion + 0x100, &layout));
  for (const unsigned word :
       {0, 1, 2, 4, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70}) {
    std::vector<uint64_t> bad = good;
    bad[word] = ~uint64_t{0} - 7;
    EXPECT_FALSE(unwind::exported_layout(bad.data(), kVersion, &layout)) << word;
  }
}

}  // namespace
}  // namespace mtrace::test
