// The memlog file format, version 2: what libmtrace.so writes and memlog reads.
// doc/memlog-format.md is the same grammar in prose, with an example.
//
//   file     = "# memlog 2\n" *meta *entry *tail *meta "# end\n"
//   meta     = "# " key ": " value "\n"
//   entry    = [kind "\t"] bytes "\t" field *("\t" field) "\n" *frame
//   kind     = "@" 1*(ALPHA / DIGIT / "-")     ; absent: a heap entry
//   bytes    = ("+" / "-") 1*DIGIT             ; requested bytes since the previous report
//   field    = key "=" value                   ; blocks= live= stack= ...; unknown keys are skipped
//   frame    = "\t" place ["?"] "\n"           ; not resolved, or nothing known
//            / "\t" function "\t" place ["?"] "\n"
//            / "\t" function "\t" source "\t" place ["?"] "\n"
//            / "\t...\n"                       ; last line: the stack was cut at the depth
//            / "\t^ tail=" id "\n"             ; last line: it goes on as that tail does
//   tail     = "# tail: " id "\n" 1*frame
//   id       = 16 hex digits
//   place    = "(" module "+0x" hex ")" / "(0x" hex ")" / "(inlined)"
//   module   = path ["#" generation]           ; generation from 2
//   source   = path ":" line
//   key      = lower-case letter *(lower-case letter / DIGIT / "-")
//
// A frame's place is its last tab-separated field, so a function may itself begin with "(".
// Frames run innermost first; a frame with place "(inlined)" is inlined into the next frame that
// has an address. "?" marks the first frame of a stack that a frame pointer led to, for want of
// call-frame information: it and those behind it may be wrong. An entry without frames but with
// "..." holds what found no room in the stack table. Values and names are escaped
// (format/escape.h), so no name can forge a line.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace mtrace::format {

inline constexpr char kMagicLine[] = "# memlog 2";
inline constexpr char kFirstMagicLine[] = "# memlog 1";  // of reports without tails
inline constexpr char kEndLine[] = "# end";
inline constexpr char kCutLine[] = "...";
inline constexpr char kTailMark[] = "^ tail=";   // ends a list of frames that goes on elsewhere
inline constexpr unsigned kUntailedFrames = 10;  // of an entry that are before that at least
inline constexpr char kInlined[] = "(inlined)";
inline constexpr char kGuessedMark = '?';
inline constexpr char kUnknownFunction[] = "??";
inline constexpr char kSuffix[] = ".memlog";
inline constexpr char kCompressedSuffix[] = ".zst";  // behind kSuffix
inline constexpr char kVdsoPath[] = "[vdso]";

// Meta keys, in the order in which the library writes them. Those up to kKeyLost come before the
// entries, the others after them, so that the first screen of a file shows what matters most.
inline constexpr char kKeyProgram[] = "program";  // path of the executable
inline constexpr char kKeyCommand[] = "command";  // arguments, each escaped, by spaces
inline constexpr char kKeyPid[] = "pid";
inline constexpr char kKeyParent[] = "parent";    // pid; only in a process made by fork
inline constexpr char kKeySeq[] = "seq";          // from 1; relative to the fork in a child
inline constexpr char kKeyMerged[] = "merged";    // FIRST to SEQ: memlog merged these reports
inline constexpr char kKeyTrigger[] = "trigger";  // signal, exit, api, request; by memlog:
                                                  // recovered, snapshot
inline constexpr char kKeyLabel[] = "label";
inline constexpr char kKeyStarted[] = "started";  // UTC, microseconds; of the child: the fork
inline constexpr char kKeyTaken[] = "taken";
inline constexpr char kKeyInherited[] = "inherited";  // N bytes M blocks; only after fork
inline constexpr char kKeySampled[] = "sampled";      // N bytes: from sample to sample, on average
inline constexpr char kKeyDelta[] = "delta";          // +N bytes +M blocks: the sum of all changes
inline constexpr char kKeyLive[] = "live";            // N bytes M blocks
inline constexpr char kKeyUsable[] = "usable";        // N bytes: what the allocator gave for `live`
inline constexpr char kKeyPeak[] = "peak";  // N bytes TIME: the most that was live, and when
inline constexpr char kKeyPeakError[] = "peak-error";  // N bytes: by how much it may be off
inline constexpr char kKeyAllocated[] = "allocated";   // N bytes M blocks since the start, ...
inline constexpr char kKeyFreed[] = "freed";           // ... of which these were freed
inline constexpr char kKeyLost[] = "lost";             // frames=N stacks=N blocks=N inflight=N
inline constexpr char kKeyRecording[] = "recording";   // stopped; absent: going on
inline constexpr char kKeyNote[] = "note";             // for the reader; anywhere, repeatable
// Begins the note of a report that is elsewhere: the directory where it should be follows.
inline constexpr char kNoteElsewhere[] = "could not write to ";
inline constexpr char kKeyKind[] = "kind";      // NAME N bytes M blocks: live of that @kind
inline constexpr char kKeyTail[] = "tail";      // 16 hex digits; lines of frames follow
inline constexpr char kKeyModule[] = "module";  // PATH[#G] build-id=HEX base=0xHEX
inline constexpr char kModulePython[] = "language=python";  // in such a line: a source file
// The processor of the line `host`, as uname(1) has it, by its number in ELF files. 0: of files
// that are older than the second processor.
constexpr const char* processor_name(unsigned machine) {
  return machine == EM_AARCH64 ? "aarch64" : "x86_64";
}
inline constexpr char kKeyHost[] = "host";                  // NAME boot-id=UUID arch=x86_64
inline constexpr char kKeyCalls[] = "calls";                // FUNCTION=N ...: calls since the start
inline constexpr char kKeyFailed[] = "failed-allocations";  // N calls that returned no memory
inline constexpr char kKeyUnknownFrees[] = "unknown-frees";  // N frees of blocks never seen
inline constexpr char kKeyMisuse[] = "misuse";    // CAUSE=N ...: calls of the API in error
inline constexpr char kKeyReports[] = "reports";  // written=N failed=N, with this one
inline constexpr char kKeyRegion[] = "region";    // resident=N size=N NAME: mappings of one kind
inline constexpr char kKeyHeap[] = "heap";        // resident=N live=N free=N ...: malloc's heaps
inline constexpr char kKeyHeapStacks[] = "heap-stacks";  // ID=N ...: who keeps them resident
inline constexpr char kKeyRss[] = "rss";                 // N bytes: resident memory of the process
inline constexpr char kKeyRssMax[] = "rss-max";          // N bytes: the most that it ever was
inline constexpr char kKeyVirtual[] = "virtual";         // N bytes: address space of the process
inline constexpr char kKeyCost[] =
    "cost";  // memory=N shadow=N stopped-us=N processor-ms=N: tracing's
inline constexpr char kKeyPerfMap[] = "perf-map";       // N bytes: size of /tmp/perf-PID.map then
inline constexpr char kKeyJitDump[] = "jit-dump";       // N bytes PATH: size of a jitdump then
inline constexpr char kKeyResolution[] = "resolution";  // N.NNN ms: of lifetimes and ages
inline constexpr char kKeyUptime[] = "uptime";          // N.NNN seconds since `started`
inline constexpr char kKeyResolved[] = "resolved";      // no, partly, yes
inline constexpr char kKeyLibrary[] = "library";  // mtrace VERSION allocator=NAME [OPTION=...]*

// Beginnings of notes about what the library does not cover: in general; before memlog attach; by
// another malloc; a whole program; Python functions.
inline constexpr char kNotCovered[] = "not covered: ";
inline constexpr char kNotCoveredBefore[] =
    "not covered: what the program allocated before memlog attach";
inline constexpr char kNotCoveredMalloc[] = "not covered: malloc of ";
inline constexpr char kNotCoveredProgram[] = "not covered: the program ";
inline constexpr char kNotCoveredPython[] = "not covered: Python frames";
inline constexpr char kPythonOnTrial[] = "on trial: Python frames";

// Beginning of the note that names resident memory which is not malloc's. memlog makes it of the
// lines `region`; older libraries wrote it.
inline constexpr char kResident[] = "resident, not malloc's: ";

// Whether so much of a process's resident memory is worth a line.
constexpr bool is_much(uint64_t bytes, uint64_t resident) {
  return bytes >= uint64_t{8} << 20 && bytes >= resident / 5;
}

// Names of a `region` that is not a file or named by the kernel.
inline constexpr char kRegionMalloc[] = "malloc";  // heaps and large blocks
inline constexpr char kRegionOwn[] = "mtrace's tables";
inline constexpr char kRegionTaken[] = "taken by sbrk";
inline constexpr char kRegionOthers[] = "other mappings";  // files beyond the first 500 or so
// Any other memory: then the access as in /proc/PID/smaps, and words after spaces.
inline constexpr char kRegionAnonymous[] = "anonymous ";
inline constexpr char kRegionSupplied[] = "um";  // userfaultfd: VmFlags has um or ui
inline constexpr char kRegionChunk[] = "chunk";  // begins as a chunk of V8's heap does
inline constexpr char kRegionStack[] = "stack";  // glibc's descriptor of a thread is at its end
inline constexpr char kRegionLow[] = "low";      // below kRegionLowEnd
inline constexpr uint64_t kRegionLowEnd = uint64_t{32} << 30;

// Kinds of entries that the library makes itself. Their bytes and blocks only grow.
inline constexpr char kKindFailed[] = "failed";  // allocations that failed: requested bytes, ...
inline constexpr uint64_t kMostFailed = (uint64_t{1} << 47) - 1;  // ... of a stack at most

// Calls that query or tune the allocator: blocks are calls.
inline constexpr char kKindControl[] = "control";
// With MTRACE_UNKNOWN=stacks: frees of blocks whose allocation was not seen.
inline constexpr char kKindUnknownFree[] = "unknown-free";

// Entry fields.
inline constexpr char kFieldBlocks[] = "blocks";           // signed
inline constexpr char kFieldLive[] = "live";               // bytes the stack holds now
inline constexpr char kFieldAllocations[] = "allocs";      // since the previous report: calls,
inline constexpr char kFieldAllocated[] = "allocated";     // their bytes,
inline constexpr char kFieldFrees[] = "frees";             // frees of this stack's blocks,
inline constexpr char kFieldFreed[] = "freed";             // their bytes; each only if not 0
inline constexpr char kFieldTemporary[] = "temporary";     // frees by the thread that allocated the
                                                           // block and nothing since; part of
                                                           // `frees`
inline constexpr char kFieldShortLived[] = "short-lived";  // frees within a set time; part of
                                                           // `frees`
inline constexpr char kFieldLifetimeMin[] = "lifetime-min";    // of the blocks freed since the
inline constexpr char kFieldLifetimeMean[] = "lifetime-mean";  // previous report: milliseconds
inline constexpr char kFieldLifetimeMax[] = "lifetime-max";    // from allocation to free
inline constexpr char kFieldAge[] = "age";      // milliseconds since the oldest live block was made
inline constexpr char kFieldSlack[] = "slack";  // usable less requested bytes of the live blocks
inline constexpr char kFieldPeak[] = "peak";    // bytes that the stack held at the process's peak
inline constexpr char kFieldCall[] = "call";    // the function that was called, see calls.h
inline constexpr char kFieldSaturated[] = "saturated";  // 1: of kMostFailed bytes or more
inline constexpr char kFieldProtection[] = "prot";      // of a mapping, see mapping_form.h
inline constexpr char kFieldFlags[] = "flags";          // of a mapping, see mapping_form.h
inline constexpr char kFieldStack[] = "stack";          // 16 hex digits, see StackId

inline constexpr int kMaxDepth = 256;

// Finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014). Every input bit affects every output bit.
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The 64-bit FNV-1a hash (Fowler, Noll and Vo). `hash`: that of the bytes before these.
inline constexpr uint64_t kFnv1aBasis = 0xcbf29ce484222325u;
constexpr uint64_t fnv1a(const char* bytes, size_t size, uint64_t hash = kFnv1aBasis) {
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3u;
  }
  return hash;
}

// Returns the hash of a module's identity: its raw build-id or, without one, its path.
inline uint64_t module_identity(const void* bytes, size_t size) {
  return fnv1a(static_cast<const char*>(bytes), size);
}

// The `stack=` id: the same stack has the same id in every report, restart and machine. Add frames
// outermost first; a frame without module has identity 0 and its address as offset.
class StackId {
 public:
  constexpr StackId() = default;
  // Goes on from the value() of frames further out.
  explicit constexpr StackId(uint64_t value) : value_(value) {}
  constexpr void add(uint64_t module_identity, uint64_t offset) {
    value_ = mix64(mix64(value_ + module_identity) ^ offset);
  }
  constexpr uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0x6d656d6c6f672031u;  // "memlog 1"
};

}  // namespace mtrace::format
