// check_memlogs DIRECTORY: what the tests' own reader of memlogs (memlog_file.h) says of those of a
// directory. Prints a line "report ENTRIES" for each, "note TEXT" for each of its notes, and
// "wrong TEXT" for what is wrong with one or with a series.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "memlog_file.h"

using namespace mtrace::test;

void say(const std::vector<std::string>& wrong) {
  for (const std::string& line : wrong) std::cout << "wrong " << line << '\n';
}

int main(int, char** argv) {
  std::map<std::string, std::vector<std::string>> series;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    const std::string path = file.path();
    if (!path.ends_with(".memlog")) continue;
    // What was recovered tells all that is live, whatever was reported before.
    const bool recovered = path.ends_with("-recovered.memlog");
    series[recovered ? path : path.substr(0, path.rfind('-'))].push_back(path);
  }
  for (const auto& [name, paths] : series) {
    try {
      std::vector<Memlog> logs;
      for (const std::string& path : paths) {
        const Memlog& log = logs.emplace_back(read_memlog(path));
        std::cout << "report " << log.entries.size() << '\n';
        for (const std::string& note : log.all("note")) std::cout << "note " << note << '\n';
        std::vector<std::string> wrong = complaints(log);
        if (path == name) std::erase(wrong, path + ": no key uptime");
        say(wrong);
        if (path != name && path != name + "-" + log.get("seq") + ".memlog")
          say({path + " has another number"});
      }
      std::sort(logs.begin(), logs.end(),
                [](const Memlog& a, const Memlog& b) { return a.number("seq") < b.number("seq"); });
      if (paths[0] != name) say(series_complaints(logs));
    } catch (const MemlogError& error) {
      say({error.what()});
    }
  }
}
