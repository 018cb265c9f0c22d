// Functions with frames of many kinds, each of which allocates and calls on (frames.cc), and the
// program that leads through them (tests/programs/random_frames.cc).
#pragma once

namespace frames {

using Frame = void (*)(unsigned left);
inline constexpr unsigned kFrames = 17;
inline constexpr unsigned kPlain = 11;  // the first of them: walks through these are remembered
// frames.cc by each compiler, without and with frame pointers.
extern "C" const Frame frames_gcc_nofp[kFrames], frames_gcc_fp[kFrames], frames_clang_nofp[kFrames],
    frames_clang_fp[kFrames];

// Random, but the same each time that a path is taken.
unsigned next(unsigned below);
// True with a probability of one in `in`, anew each time.
bool seldom(unsigned in);
// Has allocated once more.
void count();
// Calls `left` frames more, if there is room.
void go_on(unsigned left);
// Every instruction of the program from here on is followed by a SIGTRAP, up to the first one
// outside of the program.
extern "C" void step_from_here();
// Where the handlers of SIGILL and SIGTRAP go on.
extern unsigned left_to_handler;

}  // namespace frames
