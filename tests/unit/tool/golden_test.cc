// What memlog prints, for each combination of flags and input: the files of tests/golden. To renew
// them after a change that is meant, run with MEMLOG_UPDATE_GOLDEN=1 and read the difference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

struct GoldenCase {
  const char* name;   // of the file with what is expected, and of the test
  const char* words;  // the command line, words parted by spaces, in the directory of the files
  bool terminal = false;
};

constexpr GoldenCase kCases[] = {
    {"show", "show app-4711-2.memlog"},
    {"show_terminal", "show app-4711-2.memlog", true},
    {"top_nothing", "top"},
    {"top_bad_delay", "top --delay 1ms 1"},
    {"top_bad_order", "top --by size 1"},
    {"top_unknown", "top there-is-no-such-process"},
    {"help_serve", "help serve"},
    {"serve_bad_address", "serve --listen 7040"},
    {"serve_no_token", "serve --listen 0.0.0.0:7040"},
    {"serve_token_missing", "serve --token-file gone"},
    {"serve_unknown", "serve there-is-no-such-process"},
    {"recover_nothing", "recover --raw"},
    {"recover_no_ledger", "recover app-4711-1.memlog"},
    {"recover_missing", "recover gone.ledger"},
    {"recover_two_outputs", "recover -o out.memlog a.ledger b.ledger"},
    {"run_bad_ledger", "run --ledger show.txt true"},
    {"show_limit", "show -n 2 app-4711-2.memlog"},
    {"show_all", "show -n 0 app-4711-1.memlog"},
    {"show_depth1", "show --depth 1 app-4711-2.memlog"},
    {"show_depth2", "show --depth=2 --oneline app-4711-2.memlog"},
    {"show_depth128", "show --depth 128 app-4711-2.memlog"},
    {"show_oneline", "show --oneline app-4711-2.memlog"},
    {"show_oneline_terminal", "show --oneline app-4711-2.memlog", true},
    {"show_colour", "show --color=always -n1 app-4711-2.memlog"},
    {"show_no_colour", "show --color never app-4711-1.memlog", true},
    {"show_by_stack", "show --by stack --no-header app-4711-2.memlog"},
    {"show_by_blocks", "show --by blocks --oneline app-4711-2.memlog"},
    {"show_by_live", "show --by live --oneline --no-header app-4711-2.memlog"},
    {"show_several", "show -n 1 app-4711-1.memlog app-4711-2.memlog"},
    {"show_sum", "show --sum app-4711-1.memlog app-4711-3.memlog app-4711-2.memlog"},
    {"show_sum_oneline", "show --sum --oneline app-4711-1.memlog app-4711-2.memlog"},
    {"show_sum_depth", "show --sum --depth 1 app-4711-1.memlog app-4711-2.memlog"},
    {"show_sum_gap", "show --sum app-4711-3.memlog app-4711-1.memlog"},
    {"show_sum_first_missing", "show --sum --no-header -n 1 app-4711-3.memlog"},
    {"show_sum_twice", "show --sum app-4711-1.memlog app-4711-1.memlog"},
    {"show_sum_processes", "show --sum app-4711-1.memlog app-4711-2.memlog app-4800-1.memlog"},
    {"show_newest", "show --oneline"},
    {"show_damaged", "show damaged.memlog"},
    {"show_damaged_among", "show --oneline damaged.memlog gone.memlog app-4711-1.memlog"},
    {"show_sum_damaged", "show --sum app-4711-1.memlog damaged.memlog"},
    {"show_missing", "show gone.memlog"},
    {"show_facts", "show app-4600-1.memlog"},
    {"show_facts_terminal", "show app-4600-1.memlog", true},
    {"show_facts_moved", "show app-4600-2.memlog"},
    {"show_facts_depth", "show --depth 1 app-4600-2.memlog"},
    {"show_facts_sum", "show --sum app-4600-1.memlog app-4600-2.memlog"},
    {"show_facts_stack", "show --by stack --no-header app-4600-1.memlog"},
    {"show_sampled", "show app-4960-1.memlog"},
    {"show_sampled_terminal", "show app-4960-2.memlog", true},
    {"show_sampled_sum", "show --sum app-4960-1.memlog app-4960-2.memlog"},
    {"show_sampled_depth", "show --depth 1 app-4960-1.memlog"},
    {"show_sampled_json", "show --json app-4960-2.memlog"},
    {"show_by_allocs", "show --by allocs --no-header app-4600-2.memlog"},
    {"show_by_live_depth", "show --by live --depth 1 --no-header app-4711-2.memlog"},
    {"show_by_temporary", "show --by temporary --no-header app-4600-2.memlog"},
    {"show_by_temporary_none", "show --by temporary app-4711-1.memlog"},
    {"show_by_lifetime", "show --by lifetime --no-header app-4600-2.memlog", true},
    {"show_by_slack", "show --by slack --no-header app-4600-2.memlog"},
    {"show_by_peak", "show --peak --no-header app-4600-2.memlog"},
    {"show_by_peak_oneline", "show --by peak --oneline -n 2 app-4600-2.memlog", true},
    {"show_by_peak_sum", "show --peak --sum app-4600-1.memlog app-4600-2.memlog"},
    {"show_by_size", "show --by size --no-header app-4600-2.memlog"},
    {"tree_size", "tree --by size --no-header app-4600-2.memlog"},
    {"show_by_age", "show --by age --oneline app-4600-1.memlog"},
    {"show_by_age_terminal", "show --by age --oneline --no-header app-4600-1.memlog", true},
    {"show_by_lifetime_depth", "show --by lifetime --depth 1 --no-header app-4600-2.memlog"},
    {"show_json", "show --json app-4600-2.memlog"},
    {"show_json_several", "show --json --by peak -n 1 app-4600-1.memlog app-4711-3.memlog"},
    {"show_json_sum", "show --json --sum --depth 1 app-4600-1.memlog app-4600-2.memlog"},
    {"show_json_damaged", "show --json damaged.memlog"},
    {"filter_include", "show --oneline -i cache_put app-4711-2.memlog"},
    {"filter_include_two", "show --oneline -i ^load$ -i module:bonobo app-4711-2.memlog"},
    {"filter_source", "show --oneline -x source:server.cc:9.$ -x source:gmem app-4711-2.memlog"},
    {"filter_include_exclude", "show --no-header -i main -x server.cc:90 app-4711-2.memlog"},
    {"filter_function", "show --oneline -i function:cache.cc app-4711-2.memlog"},
    {"filter_suppressions", "show --suppressions known.supp app-4711-2.memlog"},
    {"filter_suppressions_bad", "show --suppressions broken.supp app-4711-2.memlog"},
    {"filter_suppressions_missing", "show --suppressions gone.supp app-4711-2.memlog"},
    {"filter_min_bytes", "show --oneline --min-bytes 1.5K app-4711-2.memlog"},
    {"filter_grew", "show --oneline --grew --no-header app-4711-2.memlog"},
    {"filter_shrank_sum", "show --oneline --shrank --sum app-4711-1.memlog app-4711-2.memlog"},
    {"filter_lifetime", "show --oneline --lifetime 20s.. --no-header app-4600-2.memlog"},
    {"filter_frames", "show --frames 2..3 --no-header app-4711-2.memlog"},
    {"filter_frames_beyond", "show --frames 5.. --oneline --no-header app-4711-2.memlog"},
    {"show_frames_all", "show --frames all --no-header app-4900-1.memlog"},
    {"show_full_names", "show --full-names --no-header app-4900-1.memlog"},
    {"show_folded", "show --no-header app-4900-1.memlog"},
    {"show_by_function", "show --group-by function --no-header app-4711-2.memlog"},
    {"show_by_function_peak", "show --group-by function --peak --oneline app-4600-2.memlog"},
    {"show_by_function_sum", "show --group-by function --sum app-4600-1.memlog app-4600-2.memlog"},
    {"show_by_file", "show --group-by file --oneline --no-header app-4711-2.memlog"},
    {"show_by_line", "show --group-by line --oneline --no-header app-4711-2.memlog"},
    {"show_by_module", "show --group-by module --oneline --no-header app-4711-2.memlog"},
    {"show_library", "show --library ^cache_ --oneline --no-header app-4711-2.memlog"},
    {"show_library_file",
     "show --library library.supp --own ^g_ -n 3 --no-header app-4711-2.memlog"},
    {"show_library_bad", "show --library broken.supp app-4711-2.memlog"},
    {"show_library_gone", "show --library gone/lib.txt app-4711-2.memlog"},
    {"show_own_bad", "show --own ( app-4711-2.memlog"},
    {"show_group_by_depth", "show --group-by file --depth 2 app-4711-2.memlog"},
    {"show_group_by_bad", "show --group-by thread app-4711-2.memlog"},
    {"diff_by_function", "diff --group-by function app-4711-1.memlog app-4711-2.memlog"},
    {"leaks_by_stack", "leaks --group-by stack app-5000-*.memlog"},
    {"leaks_frames_all", "leaks --frames all app-5000-*.memlog"},
    {"check_by_function", "check --group-by function --max-growth 1000 app-4711-[12].memlog"},
    {"help_library_code", "help library-code"},
    {"filter_label", "show --oneline --label warm app-4711-1.memlog app-4711-2.memlog"},
    {"filter_seq_sum", "show --sum --oneline --seq 2.. app-4711-2.memlog app-4711-1.memlog"},
    {"filter_none", "show --json --seq 7 app-4711-1.memlog app-4711-2.memlog"},
    {"filter_json", "show --json -i load app-4711-2.memlog"},
    {"filter_bad_regex", "show -i cache( app-4711-2.memlog"},
    {"filter_empty_regex", "show -x function: app-4711-2.memlog"},
    {"filter_bad_label", "show --label ) app-4711-2.memlog"},
    {"filter_bad_seq", "show --seq 5..2 app-4711-2.memlog"},
    {"filter_bad_frames", "show --frames 0..3 app-4711-2.memlog"},
    {"filter_bad_size", "show --min-bytes 12X app-4711-2.memlog"},
    {"filter_bad_time", "show --lifetime 5parsec app-4711-2.memlog"},
    {"filter_both_ways", "show --grew --shrank app-4711-2.memlog"},
    {"filter_depth_and_frames", "show --depth 2 --frames 1..2 app-4711-2.memlog"},
    {"tree", "tree app-4711-2.memlog"},
    {"tree_terminal", "tree app-4711-2.memlog", true},
    {"tree_invert", "tree --invert --no-header app-4711-1.memlog"},
    {"tree_threshold", "tree --threshold 5 --no-header app-4711-1.memlog"},
    {"tree_threshold_0", "tree -t 0 --no-header app-4711-2.memlog"},
    {"tree_std", "tree --no-header app-4900-1.memlog"},
    {"tree_std_full", "tree --full --no-header app-4900-1.memlog"},
    {"tree_std_invert", "tree --invert --no-header app-4900-1.memlog"},
    {"tree_blocks", "tree --by blocks --no-header app-4711-2.memlog"},
    {"tree_peak", "tree --peak --no-header app-4600-2.memlog"},
    {"tree_age", "tree --by age --no-header app-4600-2.memlog", true},
    {"tree_sum", "tree --sum app-4711-1.memlog app-4711-2.memlog"},
    {"tree_filtered", "tree -i cache_put --grew --no-header app-4711-2.memlog"},
    {"tree_several", "tree app-4711-1.memlog app-4711-3.memlog"},
    {"tree_damaged", "tree damaged.memlog"},
    {"tree_bad_threshold", "tree --threshold 101 app-4711-1.memlog"},
    {"tree_by_stack", "tree --by stack app-4711-1.memlog"},
    {"help_tree", "tree --help"},
    {"diff", "diff app-4711-1.memlog app-4711-2.memlog"},
    {"diff_terminal", "diff app-4711-1.memlog app-4711-2.memlog", true},
    {"diff_completed", "diff --oneline app-4711-2.memlog app-4700-1.memlog"},
    {"diff_build", "diff app-4711-1.memlog app-4700-1.memlog"},
    {"diff_set", "diff --oneline app-4711-[12].memlog app-4900-1.memlog"},
    {"diff_deltas", "diff --deltas --oneline app-4711-1.memlog app-4711-2.memlog"},
    {"diff_depth", "diff --depth 1 --no-header app-4711-1.memlog app-4711-2.memlog"},
    {"diff_filtered", "diff --shrank -i function:cache_put app-4711-1.memlog app-4711-2.memlog"},
    {"diff_blocks", "diff --by blocks -n 1 app-4711-1.memlog app-4711-2.memlog"},
    {"diff_same", "diff app-4711-1.memlog app-4711-1.memlog"},
    {"diff_sum_differs", "diff app-4711-1.memlog app-4800-1.memlog"},
    {"diff_damaged", "diff app-4711-1.memlog damaged.memlog"},
    {"diff_gone", "diff app-4711-1.memlog gone*"},
    {"diff_one", "diff app-4711-1.memlog"},
    {"diff_seq", "diff --seq 2 app-4711-1.memlog app-4711-2.memlog"},
    {"help_diff", "diff --help"},
    {"leaks", "leaks app-5000-*.memlog"},
    {"leaks_terminal", "leaks app-5000-*.memlog --limit 1M", true},
    {"leaks_label", "leaks --label round-[2-5] --level 0.05 app-5000-*.memlog"},
    {"leaks_all", "leaks --all --depth 1 --no-header app-5000-*.memlog"},
    {"leaks_filtered", "leaks -x leaky --limit 20K app-5000-*.memlog"},
    {"leaks_limit", "leaks --limit 64K -n 1 app-5000-*.memlog"},
    {"leaks_limit_now", "leaks --limit 1K -n 1 app-5000-*.memlog"},
    {"leaks_too_few", "leaks app-4711-1.memlog app-4711-3.memlog app-5000-2.memlog"},
    {"leaks_twice", "leaks app-5000-2.memlog app-5000-2.memlog"},
    {"leaks_damaged", "leaks app-5000-2.memlog damaged.memlog"},
    {"leaks_bad_level", "leaks --level 2 app-5000-2.memlog"},
    {"leaks_bad_limit", "leaks --limit much app-5000-2.memlog"},
    {"leaks_lifetime", "leaks --lifetime 1.. app-5000-2.memlog"},
    {"help_leaks", "leaks --help"},
    {"check_growth", "check --max-growth 1000 app-4711-[12].memlog"},
    {"check_growth_good", "check --max-growth 64M app-4711-[12].memlog"},
    {"check_live", "check --max-live 8K -n 1 app-5000-[123].memlog"},
    {"check_live_good", "check --max-live 64K --max-growth 1K -x ^start$ app-5000-[123].memlog"},
    {"check_baseline", "check --baseline app-4711-1.memlog app-4700-1.memlog"},
    {"check_baseline_good", "check --baseline app-4711-1.memlog --max-growth 2K app-4700-1.memlog"},
    {"check_suppressed", "check --suppressions known.supp --max-growth 8K app-4711-2.memlog"},
    {"check_one_report", "check app-4711-1.memlog"},
    {"check_nothing", "check"},
    {"check_both", "check app-4711-1.memlog -- true"},
    {"check_growth_of_program", "check --max-growth 1K -- true"},
    {"check_bad_size", "check --max-live lots app-4711-1.memlog"},
    {"check_bad_baseline", "check --baseline gone* -- true"},
    {"check_builtin", "check --print-builtin"},
    {"help_check", "check --help"},
    {"export_folded", "export -f folded app-4711-2.memlog"},
    {"export_folded_peak", "export -f folded --peak app-4600-2.memlog"},
    {"export_speedscope", "export -f speedscope -i cache_put app-4711-2.memlog"},
    {"export_callgrind", "export -f callgrind app-4900-1.memlog"},
    {"export_massif", "export -f massif app-4900-1.memlog"},
    {"export_massif_series",
     "export -f massif app-4711-3.memlog app-4711-1.memlog app-4711-2.memlog"},
    {"export_massif_filtered",
     "export -f massif --min-bytes 6000 app-4711-1.memlog "
     "app-4711-2.memlog"},
    {"export_massif_peak", "export -f massif --by peak app-4600-2.memlog"},
    {"export_heaptrack", "export -f heaptrack app-4711-1.memlog app-4711-2.memlog"},
    {"export_heaptrack_gap", "export -f heaptrack app-4711-1.memlog app-4711-3.memlog"},
    {"export_heaptrack_one", "export -f heaptrack app-4711-2.memlog"},
    {"export_heaptrack_blocks", "export -f heaptrack --by blocks app-4711-2.memlog"},
    {"export_heaptrack_damaged", "export -f heaptrack app-4711-1.memlog damaged.memlog"},
    {"export_dot", "export -f dot app-4900-1.memlog"},
    {"export_gprof2dot", "export -f gprof2dot app-4600-1.memlog"},
    {"export_csv", "export -f csv app-4711-2.memlog"},
    {"export_csv_sum", "export -f csv app-4711-1.memlog app-4711-2.memlog"},
    {"export_jsonl", "export -f jsonl app-4600-2.memlog"},
    {"export_gap", "export -f folded app-4711-1.memlog app-4711-3.memlog"},
    {"export_damaged", "export -f folded app-4711-1.memlog damaged.memlog"},
    {"export_no_format", "export app-4711-1.memlog"},
    {"export_bad_format", "export -f svg2 app-4711-1.memlog"},
    {"export_by_age", "export -f folded --by age app-4711-1.memlog"},
    {"export_terminal", "export -f pprof app-4711-1.memlog", true},
    {"export_nowhere", "export -f csv -o /nowhere/x app-4711-1.memlog"},
    {"export_base", "export -f folded --base app-4711-1.memlog app-4711-2.memlog"},
    {"export_base_csv", "export -f csv --base app-4711-1.memlog app-4711-2.memlog"},
    {"export_base_live", "export -f folded --by live --base app-4711-1.memlog app-4711-2.memlog"},
    {"export_base_seq", "export -f folded --seq 2 --base app-4711-1.memlog app-4711-2.memlog"},
    {"export_base_gone", "export -f flamegraph --base gone.memlog app-4711-2.memlog"},
    {"export_base_damaged", "export -f flamegraph --base damaged.memlog app-4711-2.memlog"},
    {"export_base_sum", "export -f flamegraph --base app-4711-1.memlog app-4800-1.memlog"},
    {"export_base_pprof", "export -f pprof --base app-4711-1.memlog app-4711-2.memlog"},
    {"export_html_by", "export -f html --by live app-4711-2.memlog"},
    {"export_html_base", "export -f html --base app-4711-1.memlog app-4711-2.memlog"},
    {"export_html_grew", "export -f html --grew app-4711-2.memlog"},
    {"export_html_processes", "export -f html app-4711-1.memlog app-4800-1.memlog"},
    {"export_html_twice", "export -f html app-4711-1.memlog app-4711-1.memlog"},
    {"export_html_input", "export -f html -"},
    {"export_html_damaged", "export -f html damaged.memlog"},
    {"export_html_none", "export -f html --seq 9 app-4711-1.memlog"},
    {"help_sql", "sql --help"},
    {"help_events", "events --help"},
    {"help_strip", "strip --help"},
    {"help_pack", "pack --help"},
    {"help_export", "export --help"},
    {"help_run", "run --help"},
    {"run_nothing", "run --quiet"},
    {"run_bad_every", "run --every 5x true"},
    {"run_bad_every_short", "run --every 1ms true"},
    {"run_bad_depth", "run --depth 0 true"},
    {"run_bad_signal", "run --signal KILL true"},
    {"run_bad_sample", "run --sample 0 true"},
    {"run_bad_output", "run --output app-4711-1.memlog true"},
    {"run_bad_output_below", "run --output nowhere/x true"},
    {"run_bad_follow", "run --follow= true"},
    {"run_unknown_option", "run --depht 3 true"},
    {"resolve_damaged", "resolve damaged.memlog"},
    {"resolve_stdout", "resolve -o - app-4711-2.memlog"},
    {"no_command", ""},
    {"help", "help"},
    {"help_options", "help options"},
    {"help_show", "show --help"},
    {"help_resolve", "help resolve"},
    {"help_decode", "help decode"},
    {"decode_missing", "decode gone.txt"},
    {"decode_named", "decode app-4711-3.memlog"},
    {"decode_no_modules", "decode --no-modules app-4711-3.memlog"},
    {"help_report", "report --help"},
    {"help_top", "help top"},
    {"help_expire", "help expire"},
    {"expire_nothing", "expire"},
    {"expire_bad_after", "expire --after 1ms 1"},
    {"expire_bad_format", "expire -f xml 1"},
    {"expire_unknown", "expire there-is-no-such-process"},
    {"help_unreachable", "help unreachable"},
    {"unreachable_nothing", "unreachable"},
    {"unreachable_bad_pause", "unreachable --pause long 1"},
    {"unreachable_unknown", "unreachable there-is-no-such-process"},
    {"help_map", "help map"},
    {"map_nothing", "map"},
    {"map_unknown", "map there-is-no-such-process"},
    {"help_replay", "help replay"},
    {"replay_nothing", "replay"},
    {"replay_unknown", "replay -a bestmalloc app-4711.events"},
    {"help_recover", "help recover"},
    {"help_status", "status -h"},
    {"help_help", "help help"},
    {"help_unknown", "help optoins"},
    {"unknown_command", "shwo"},
    {"unknown_command_far", "frobnicate"},
    {"unknown_option", "show --onelien app-4711-1.memlog"},
    {"unknown_brief_option", "show -y"},
    {"value_missing", "show --depth"},
    {"value_unwanted", "show --sum=3"},
    {"value_range", "show --depth 257 app-4711-1.memlog"},
    {"value_number", "show -n many app-4711-1.memlog"},
    {"value_choice", "show --by colour app-4711-1.memlog"},
    {"value_together", "show --by live --sum app-4711-1.memlog"},
    {"value_two_orders", "show --peak --by age app-4711-1.memlog"},
    {"value_json_oneline", "show --json --oneline app-4711-1.memlog"},
    {"resolve_nothing", "resolve"},
    {"resolve_two_outputs", "resolve -o x app-4711-1.memlog app-4711-2.memlog"},
    {"resolve_bad_sysroot", "resolve --sysroot /nowhere app-4711-1.memlog"},
    {"report_nothing", "report"},
    {"report_timeout", "report --timeout 0 1"},
    {"attach_help", "attach --help"},
    {"attach_nothing", "attach"},
    {"attach_depth", "attach --depth 0 1"},
    {"attach_sample", "attach --sample much 1"},
    {"attach_no_such", "attach no-such-program-anywhere"},
    {"detach_help", "detach --help"},
    {"detach_nothing", "detach"},
};

class Golden : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    directory_ = source_dir() + "/tests/golden";
    // What the tests hold against a fixed text must not depend on who runs them.
    ::unsetenv("MTRACE_OUTPUT");
    ::unsetenv("NO_COLOR");
    std::filesystem::current_path(directory_);
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  std::filesystem::path before_;
  std::filesystem::path directory_;
};

TEST_P(Golden, IsAsExpected) {
  const GoldenCase& test = GetParam();
  std::vector<std::string> words;
  for (const std::string_view word : util::split(test.words, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  const Outcome result = memlog(words, test.terminal);
  const std::string text = "$ memlog " + std::string(test.words) + "\n" + result.out +
                           (result.err.empty() ? "" : "--- standard error\n" + result.err) +
                           "--- exit status " + std::to_string(result.status) + "\n";
  const std::string file = std::string(test.name) + ".txt";
  if (std::getenv("MEMLOG_UPDATE_GOLDEN") != nullptr) write_file(file, text);
  EXPECT_EQ(text, read_file(file));
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<GoldenCase>& info) {
                           return std::string(info.param.name);
                         });

TEST_F(Golden, EachInputIsReadAndWrittenUnchanged) {
  size_t count = 0;
  for (const auto& item : std::filesystem::directory_iterator(".")) {
    const std::string name = item.path().filename();
    if (!name.ends_with(".memlog") || name == "damaged.memlog") continue;
    std::string text = read_file(name);
    text.replace(0, text.find('\n'), format::kMagicLine);  // two are of version 1
    EXPECT_EQ(profile::write(profile::read_path(name)), text) << name;
    ++count;
  }
  EXPECT_EQ(count, 19u);
}

TEST_F(Golden, EachExpectationIsUsed) {
  for (const auto& item : std::filesystem::directory_iterator(".")) {
    if (item.path().extension() != ".txt") continue;
    bool used = false;
    for (const GoldenCase& test : kCases) used |= item.path().stem() == test.name;
    EXPECT_TRUE(used) << item.path();
  }
}

TEST_F(Golden, ADumbTerminalGetsNoColour) {
  ::setenv("TERM", "dumb", 1);
  EXPECT_EQ(memlog({"show", "app-4711-1.memlog"}, true).out.find('\033'), std::string::npos);
  ::unsetenv("TERM");
  EXPECT_NE(memlog({"show", "app-4711-1.memlog"}, true).out.find('\033'), std::string::npos);
}

TEST_F(Golden, NoColourIsHonoured) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(memlog({"show", "app-4711-1.memlog"}, true).out.find('\033'), std::string::npos);
  EXPECT_NE(memlog({"show", "--color=always", "app-4711-1.memlog"}).out.find('\033'),
            std::string::npos);
  ::unsetenv("NO_COLOR");
  EXPECT_NE(memlog({"show", "app-4711-1.memlog"}, true).out.find('\033'), std::string::npos);
}

TEST_F(Golden, ReportsAreFoundWhereMtraceOutputPoints) {
  std::filesystem::current_path("/");
  const std::string directory = directory_.string();
  for (const std::string& output : {directory, directory + "/%e.%p.%n"}) {
    ::setenv("MTRACE_OUTPUT", output.c_str(), 1);
    const Outcome result = memlog({"show", "--no-header"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with("+70000 bytes")) << result.out;
  }
  TemporaryDirectory empty;
  ::setenv("MTRACE_OUTPUT", empty.path().c_str(), 1);
  EXPECT_EQ(memlog({"show"}).err,
            "memlog: no report in " + empty.path() + ": memlog run PROGRAM makes one\n");
  ::unsetenv("MTRACE_OUTPUT");
}

}  // namespace
}  // namespace mtrace::test
