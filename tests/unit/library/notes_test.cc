#include "report/notes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/table_file.h"
#include "concurrent.h"
#include "ledger/resource_table.h"

namespace mtrace::report {
namespace {

std::vector<std::string> texts(const PendingNotes& notes) {
  std::vector<std::string> found;
  for (unsigned i = 0; i < notes.count; ++i) found.push_back(note_at(notes, i).text);
  return found;
}

TEST(Notes, StayUntilTheyAreDropped) {
  reset_notes();
  EXPECT_TRUE(add_note("one", false));
  EXPECT_TRUE(add_note("two", false));
  EXPECT_EQ(texts(pending_notes()), (std::vector<std::string>{"one", "two"}));
  const PendingNotes notes = pending_notes();
  EXPECT_TRUE(add_note("three", false));
  drop_notes(notes);
  EXPECT_EQ(texts(pending_notes()), std::vector<std::string>{"three"});
  drop_notes(pending_notes());
  EXPECT_EQ(pending_notes().count, 0u);
}

TEST(Notes, KeepTheirOrderWhenSlotsAreUsedAgain) {
  reset_notes();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(add_note(std::to_string(2 * i).c_str(), false));
    ASSERT_TRUE(add_note(std::to_string(2 * i + 1).c_str(), false));
    ASSERT_EQ(texts(pending_notes()),
              (std::vector<std::string>{std::to_string(2 * i), std::to_string(2 * i + 1)}));
    drop_notes(pending_notes());
  }
}

TEST(Notes, OneMoreThanThereCanBeIsDroppedAndCounted) {
  reset_notes();
  for (unsigned i = 0; i < kMostNotes; ++i) EXPECT_TRUE(add_note("x", false));
  EXPECT_FALSE(add_note("y", false));
  EXPECT_EQ(base::g_table_header->lost_notes, 1u);
  EXPECT_EQ(pending_notes().count, kMostNotes);
  reset_notes();
  EXPECT_EQ(base::g_table_header->lost_notes, 0u);
  EXPECT_EQ(pending_notes().count, 0u);
}

TEST(Notes, LongOnesAreCut) {
  reset_notes();
  add_note(std::string(kMostNote, 'a').c_str(), false);
  add_note(std::string(kMostNote + 1, 'b').c_str(), false);
  add_note("c", true);
  add_note(std::string(kMostNote - 3, 'd').c_str(), true);
  EXPECT_EQ(texts(pending_notes()),
            (std::vector<std::string>{std::string(kMostNote, 'a'),
                                      std::string(kMostNote - 3, 'b') + "...", "c...",
                                      std::string(kMostNote - 3, 'd') + "..."}));
}

// Each note that was taken is seen once, whole; the others were dropped.
TEST(Notes, ThreadsAndAReporter) {
  reset_notes();
  constexpr int kThreads = 3;
  constexpr int kEach = 20'000;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> taken{0};
  const std::jthread writers([&] {
    run_threads(kThreads, [&](unsigned t) {
      for (int i = 0; i < kEach; ++i) {
        const std::string number = std::to_string(t) + ":" + std::to_string(i);
        taken += add_note((number + "=" + number).c_str(), false);
      }
    });
    done = true;
  });
  std::set<std::string> seen;
  auto look = [&] {
    const PendingNotes notes = pending_notes();
    for (unsigned i = 1; i < notes.count; ++i) {
      EXPECT_LE(note_at(notes, i - 1).time, note_at(notes, i).time);
    }
    for (const std::string& text : texts(notes)) {
      const size_t middle = text.find('=');
      ASSERT_NE(middle, std::string::npos) << text;
      EXPECT_EQ(text.substr(0, middle), text.substr(middle + 1));
      EXPECT_TRUE(seen.insert(text).second) << text << " twice";
    }
    drop_notes(notes);
  };
  while (!done) look();
  look();
  EXPECT_EQ(seen.size(), taken);
  EXPECT_EQ(taken + base::g_table_header->lost_notes, uint64_t{kThreads} * kEach);
}

TEST(KindNames, Grammar) {
  for (const char* good : {"a", "Z-9", "-", "0123456789012345678901234567890"}) {
    EXPECT_TRUE(ledger::is_kind_name(good)) << good;
  }
  for (const char* bad :
       {"", "a b", "a_b", "a\n", "\xc3\xa4", "01234567890123456789012345678901"}) {
    EXPECT_FALSE(ledger::is_kind_name(bad)) << bad;
  }
  EXPECT_FALSE(ledger::is_kind_name(nullptr));
}

TEST(KindNames, ThreadsAgree) {
  EXPECT_EQ(ledger::find_kind("kind0"), 0u);
  constexpr int kThreads = 4;
  std::vector<std::vector<unsigned>> numbers(kThreads);
  run_threads(kThreads, [&](unsigned t) {
    for (int i = 0; i < 1000; ++i) {
      numbers[t].push_back(ledger::find_or_add_kind(("kind" + std::to_string(i)).c_str()));
    }
  });
  // They raced, so not the same thirty names for sure, but each name has one number.
  std::set<unsigned> used;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "kind" + std::to_string(i);
    const unsigned number = ledger::find_kind(name.c_str());
    for (const auto& own : numbers) {
      EXPECT_TRUE(own[i] == number || own[i] == 0) << name;
    }
    if (number != 0) {
      EXPECT_TRUE(used.insert(number).second);
      EXPECT_EQ(ledger::kind_name(number), name);
    }
  }
  EXPECT_EQ(used.size(), 30u);
  EXPECT_EQ(ledger::kind_name(0), nullptr);
  EXPECT_EQ(ledger::kind_name(31), nullptr);
}

}  // namespace
}  // namespace mtrace::report
