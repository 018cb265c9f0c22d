#include "model/recording/chunk_writer.h"

#include <algorithm>
#include <utility>

namespace mtrace::events {

ChunkWriter::ChunkWriter(format::EventForm form, std::function<uint64_t(uint64_t)> address_of)
    : most_events_(form == format::EventForm::kFull ? format::kEventChunkEvents
                                                    : format::kCompactChunkEvents),
      events_(form == format::EventForm::kFull ? make_full_columns()
                                               : make_compact_columns(std::move(address_of))) {}

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
  column(format::kStackNumbers)
      .put_signed(int64_t{number} - std::exchange(last_stack_, number) - 1);
  Column& facts = column(format::kStackFacts);
  facts.put(stack.cut ? 1 : 0);
  facts.put_text(stack.kind);
  facts.put_text(stack.call);
  facts.put(stack.guessed);
  put_frames(stack.frames);
}

// Many stacks have their outermost frames from the one before, and most frames are of many stacks.
void ChunkWriter::put_frames(const std::vector<FrameWord>& frames) {
  const auto differ =
      std::mismatch(frames.rbegin(), frames.rend(), last_frames_.rbegin(), last_frames_.rend());
  const auto shared = static_cast<size_t>(differ.first - frames.rbegin());
  column(format::kStackShared).put(shared);
  column(format::kStackOwn).put(frames.size() - shared);
  for (size_t i = 0; i < frames.size() - shared; ++i) {
    const auto [known, fresh] =
        frame_numbers_.try_emplace({frames[i].module, frames[i].offset}, frame_numbers_.size() + 1);
    column(format::kStackFrames).put_symbol(fresh ? 0 : known->second);
    if (!fresh) continue;
    column(format::kStackModules).put(frames[i].module);
    column(format::kStackOffsets)
        .put_signed(
            static_cast<int64_t>(frames[i].offset - std::exchange(last_offset_, frames[i].offset)));
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

std::string ChunkWriter::finish() {
  Column head;
  head.put_raw(format::kEventChunkMark);
  head.put_byte('0' + format::kEventsVersion);
  head.put(first_event_);
  head.put(first_steps_);
  const auto put_definitions = [&](size_t number, Column& text) {
    head.put(number);
    head.put_raw(text.bytes());
    text.clear();
  };
  put_definitions(modules_, module_text_);
  put_definitions(pythons_, python_text_);
  head.put(stacks_);
  for (Column& column : stack_columns_) {
    head.put_text(column.bytes());
    column.clear();
  }
  put_definitions(threads_, thread_text_);
  head.put(count_);
  events_->finish(head);
  first_event_ += count_;
  count_ = frames_ = modules_ = pythons_ = stacks_ = threads_ = 0;
  last_stack_ = 0;
  last_offset_ = 0;
  last_frames_.clear();
  frame_numbers_.clear();
  return std::string(head.bytes());
}

}  // namespace mtrace::events
