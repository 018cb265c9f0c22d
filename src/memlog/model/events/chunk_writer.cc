#include "model/events/chunk_writer.h"

#include <algorithm>
#include <utility>

namespace mtrace::events {

void ChunkWriter::define_module(uint32_t number, std::string_view path, uint32_t generation,
                                std::string_view build_id, uint64_t base) {
  ++modules_;
  module_text_.put(number);
  module_text_.put_text(path);
  module_text_.put(generation);
  module_text_.put_text(build_id);
  module_text_.put(base);
}

void ChunkWriter::define_python(uint64_t frame, const Python& python) {
  ++pythons_;
  python_text_.put(frame);
  python_text_.put(python.file);
  python_text_.put(python.offset);
  python_text_.put_text(python.function);
  python_text_.put(python.line);
}

void ChunkWriter::define_stack(uint32_t number, const Stack& stack) {
  ++stacks_;
  stack_text_.put(number);
  stack_text_.put(stack.cut ? 1 : 0);
  stack_text_.put_text(stack.kind);
  stack_text_.put_text(stack.call);
  stack_text_.put(stack.guessed);
  put_frames(stack.frames);
}

// Many stacks have their outermost frames from the one before, and most frames are of many stacks.
void ChunkWriter::put_frames(const std::vector<FrameWord>& frames) {
  const auto differ =
      std::mismatch(frames.rbegin(), frames.rend(), last_frames_.rbegin(), last_frames_.rend());
  const auto shared = static_cast<size_t>(differ.first - frames.rbegin());
  stack_text_.put(shared);
  stack_text_.put(frames.size() - shared);
  for (size_t i = 0; i < frames.size() - shared; ++i) {
    const auto [known, fresh] =
        frame_numbers_.try_emplace({frames[i].module, frames[i].offset}, frame_numbers_.size() + 1);
    stack_text_.put(fresh ? 0 : known->second);
    if (!fresh) continue;
    stack_text_.put(frames[i].module);
    stack_text_.put(frames[i].offset);
  }
  last_frames_ = frames;
  frames_ += frames.size();
}

void ChunkWriter::define_thread(uint32_t number, uint32_t tid, std::string_view name) {
  ++threads_;
  thread_text_.put(number);
  thread_text_.put(tid);
  thread_text_.put_text(name);
}

void ChunkWriter::switch_to(uint32_t thread) {
  columns_[format::kThreadColumn].put(thread);
  last_thread_ = thread;
  if (thread >= addresses_.size()) addresses_.resize(thread + size_t{1});
}

std::string ChunkWriter::finish() {
  Column head;
  head.put_raw(
      {unmap_stacks_ ? format::kUnmapStackChunkMark : format::kEventChunkMark, format::kEventMark});
  unmap_stacks_ = false;
  head.put(first_event_);
  head.put(first_time_);
  for (const auto& [number, text] :
       {std::pair(modules_, &module_text_), std::pair(pythons_, &python_text_),
        std::pair(stacks_, &stack_text_), std::pair(threads_, &thread_text_)}) {
    head.put(number);
    head.put_raw(text->bytes());
    text->clear();
  }
  head.put(count_);
  for (Column& column : columns_) {
    head.put_text(column.bytes());
    column.clear();
  }
  first_event_ += count_;
  count_ = frames_ = modules_ = pythons_ = stacks_ = threads_ = 0;
  last_thread_ = 0;
  addresses_.assign(1, RecentAddresses());
  blocks_ = BlockNames();
  last_frames_.clear();
  frame_numbers_.clear();
  return std::string(head.bytes());
}

}  // namespace mtrace::events
