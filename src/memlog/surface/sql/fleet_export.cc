#include "surface/sql/fleet_export.h"

#include <compare>

#include "surface/fleet/store.h"
#include "util/text.h"
#include "view/json/views.h"

namespace mtrace::sql {
namespace {

constexpr size_t kBatch = 8 << 20;  // bytes of rows, about

struct KeptTable {
  const char* name;
  const char* key;  // equal rows are one
};
constexpr KeptTable kTables[] = {{"fleet", "program, process_key, seq, first_seq, entry"},
                                 {"stacks", "stack"}};

// A report's number is that of this run.
bool is_kept(const Column& column) { return std::string_view(column.name) != "report"; }

// The meaning of a column says when it is null.
bool may_be_null(const Column& column) {
  return std::string_view(column.meaning).find("null:") != std::string_view::npos;
}

std::string create_statement(const Table& table, const char* key) {
  std::string out = fmt::format("CREATE TABLE IF NOT EXISTS {} (\n", table.name);
  const char* separator = "  ";
  for (const Column& column : table.columns) {
    if (!is_kept(column)) continue;
    const char* type = column.type == Type::kInteger ? "Int64" : "String";
    out += fmt::format(fmt::runtime(may_be_null(column) ? "{}{} Nullable({})" : "{}{} {}"),
                       separator, column.name, type);
    separator = ",\n  ";
  }
  return out + fmt::format(") ENGINE = ReplacingMergeTree ORDER BY ({})", key);
}

std::vector<std::string> create_statements(const Tables& tables) {
  std::vector<std::string> out;
  for (const KeptTable& kept : kTables) {
    for (const auto& table : tables) {
      if (std::string_view(table->name) == kept.name) {
        out.push_back(create_statement(*table, kept.key));
      }
    }
  }
  return out;
}

json::Value json_of(const SqlValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

// Gives each row of the answer as a line of JSON, without the entries in `left_out`.
class JsonRows : public Answer {
 public:
  JsonRows(std::function<void(const std::string&)> write, const std::set<int64_t>* left_out)
      : write_(std::move(write)), left_out_(left_out) {}
  void begin(const std::vector<std::string>& columns) override { columns_ = columns; }
  void row(const std::vector<SqlValue>& values) override {
    json::Value out = json::Value::object();
    for (size_t i = 0; i < values.size(); ++i) {
      if (left_out_ != nullptr && columns_[i] == "entry" &&
          left_out_->contains(std::get<int64_t>(values[i]))) {
        return;
      }
      if (columns_[i] != "report") out[columns_[i]] = json_of(values[i]);
    }
    write_(json::line(out));
    ++count_;
  }
  void end() override {}
  size_t count() const { return count_; }

 private:
  std::function<void(const std::string&)> write_;
  const std::set<int64_t>* left_out_;
  std::vector<std::string> columns_;
  size_t count_ = 0;
};

// A report by its process and number, and the first of those that were merged into it.
struct StoredKey {
  std::string process;
  int64_t first = 0;
  int64_t seq = 0;

  auto operator<=>(const StoredKey&) const = default;
};

// What the server has.
struct Stored {
  std::map<std::string, std::map<int64_t, int64_t>> whole;  // by process and `seq`: `first`
  std::map<StoredKey, std::set<int64_t>> parts;             // entries

  void add(const StoredKey& key) { whole[key.process].emplace(key.seq, key.first); }
  // Returns how many of the reports that `key` stands for are there, alone or merged.
  int64_t count(const StoredKey& key) const {
    const auto process = whole.find(key.process);
    if (process == whole.end()) return 0;
    int64_t count = 0;
    const auto& numbers = process->second;
    for (auto one = numbers.lower_bound(key.first); one != numbers.end() && one->second <= key.seq;
         ++one) {
      count += std::min(one->first, key.seq) - std::max(one->second, key.first) + 1;
    }
    return count;
  }
};

std::set<int64_t> ask_entries(fleet::ClickHouse& server, const StoredKey& key) {
  std::set<int64_t> entries;
  const std::string answer =
      server.ask(fmt::format("SELECT entry FROM fleet WHERE process_key = '{}' AND seq = {} AND "
                             "first_seq = {} FORMAT TabSeparated",
                             key.process, key.seq, key.first));
  for (const std::string_view line : util::split(answer, '\n')) {
    if (const auto entry = util::read_unsigned(line, INT64_MAX)) {
      entries.insert(static_cast<int64_t>(*entry));
    }
  }
  return entries;
}

Stored ask_stored(fleet::ClickHouse& server) {
  Stored stored;
  const std::string answer = server.ask(
      "SELECT process_key, first_seq, seq, any(entries), uniqExact(entry) FROM fleet "
      "GROUP BY process_key, first_seq, seq FORMAT TabSeparated");
  for (const std::string_view line : util::split(answer, '\n')) {
    const auto fields = util::split(line, '\t');
    if (fields.size() != 5) continue;
    const auto number = [&](size_t at) {
      return static_cast<int64_t>(util::read_unsigned(fields[at], INT64_MAX).value_or(0));
    };
    const StoredKey key = {std::string(fields[0]), number(1), number(2)};
    if (!fleet::read_name(fleet::ReportKey{key.process, key.seq}.name())) continue;  // not memlog's
    if (number(3) == number(4)) {
      stored.add(key);
    } else {
      stored.parts[key] = ask_entries(server, key);
    }
  }
  return stored;
}

// Without reading the report if it is in a store, whose names have the key.
std::string process_key_of(const ReportSource& source) {
  if (source.ledger != nullptr) return fleet::process_key(source.ledger->report->header());
  const reports::Listed& listed = source.listed;
  const auto file = std::filesystem::absolute(listed.path).lexically_normal();
  if (const auto named =
          fleet::read_name((file.parent_path().filename() / file.filename()).native())) {
    profile::Header header;
    header.host = named->host();
    header.boot_id = named->process.substr(named->process.rfind('-') + 1);
    header.program = listed.program;
    header.pid = listed.pid;
    header.started = listed.started;
    const fleet::ReportKey key = {fleet::process_key(header), listed.seq};
    if (key == *named) return key.process;
  }
  return fleet::read_facts(listed.path, listed.path).key.process;
}

class Loading {
 public:
  Loading(Sources& sources, Database& database, fleet::ClickHouse& server)
      : sources_(sources), database_(database), server_(server) {}

  // Sends a batch that begins with the next report. Afterwards next() is behind it.
  void send() {
    if (!stored_) {
      for (const std::string& statement : create_statements(database_.tables())) {
        server_.ask(statement);
      }
      stored_ = ask_stored(server_);
    }
    Loaded counted = done_;
    std::string rows;
    std::string stacks;
    absl::flat_hash_set<uint64_t> fresh;
    std::vector<StoredKey> keys;
    size_t at = next_;
    for (; at < sources_.reports().size() && rows.size() < kBatch; ++at) {
      const ReportSource& source = sources_.reports()[at];
      const StoredKey key = {process_key_of(source), source.listed.first, source.listed.seq};
      const int64_t there = stored_->count(key);
      if (there == key.seq - key.first + 1) {
        ++counted.held;
      } else if (there != 0) {
        ++counted.left_out;
      } else {
        counted.rows += add_rows(at, key, rows);
        add_stacks(*sources_.report(at), fresh, stacks);
        keys.push_back(key);
        ++counted.reports;
      }
    }
    insert("stacks", stacks);
    insert("fleet", rows);
    for (const StoredKey& key : keys) stored_->add(key);
    known_stacks_.insert(fresh.begin(), fresh.end());
    done_ = counted;
    next_ = at;
  }
  bool is_done() const { return next_ >= sources_.reports().size(); }
  void forget_stored() { stored_.reset(); }
  const Loaded& done() const { return done_; }

 private:
  size_t add_rows(size_t at, const StoredKey& key, std::string& rows) {
    const auto part = stored_->parts.find(key);
    JsonRows answer([&](const std::string& line) { rows += line; },
                    part == stored_->parts.end() ? nullptr : &part->second);
    database_.run(fmt::format("SELECT * FROM fleet WHERE report = {}", at + 1), answer);
    return answer.count();
  }

  void add_stacks(const IndexedReport& report, absl::flat_hash_set<uint64_t>& fresh,
                  std::string& rows) {
    JsonRows answer([&](const std::string& line) { rows += line; }, nullptr);
    for (const profile::Entry& entry : report.entries()) {
      if (entry.stack == 0 || known_stacks_.contains(entry.stack)) continue;
      if (!fresh.insert(entry.stack).second) continue;
      database_.run(fmt::format("SELECT * FROM stacks WHERE stack = '{:016x}'", entry.stack),
                    answer);
    }
  }

  void insert(const char* table, const std::string& rows) {
    if (rows.empty()) return;
    server_.ask(fmt::format("INSERT INTO {} FORMAT JSONEachRow", table), rows);
  }

  Sources& sources_;
  Database& database_;
  fleet::ClickHouse& server_;
  std::optional<Stored> stored_;
  absl::flat_hash_set<uint64_t> known_stacks_;  // that the server has
  size_t next_ = 0;                             // report
  Loaded done_;
};

}  // namespace

std::string clickhouse_schema(const Tables& tables) {
  std::string out;
  for (const std::string& statement : create_statements(tables)) out += statement + ";\n";
  return out;
}

void write_rows(Database& database, const std::string& table,
                const std::function<void(const std::string&)>& write) {
  JsonRows answer(write, nullptr);
  database.run("SELECT * FROM " + table, answer);
}

Loaded load(Sources& sources, Database& database, fleet::ClickHouse& server,
            const std::function<void(const std::string&)>& wait) {
  Loading loading(sources, database, server);
  while (!loading.is_done()) {
    try {
      loading.send();
    } catch (const fleet::ServerError& error) {
      if (error.kind() != fleet::ServerError::Kind::kPassing) throw;
      loading.forget_stored();
      wait(error.what());
    }
  }
  return loading.done();
}

}  // namespace mtrace::sql
