// memlog serve: the heaps of running processes over HTTP.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <future>

#include "process/inspect/process.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/fleet/remote.h"
#include "surface/serve/access.h"
#include "surface/serve/heaps.h"
#include "surface/serve/http.h"
#include "surface/serve/site.h"

namespace mtrace::cli {
namespace {

constexpr char kServeHelp[] = R"(
Serves a page with the live bytes of running processes, a scrape target for Prometheus, profiles for
pprof, and a REST interface, until it is interrupted. Prints the address that it listens at. Shows
the processes whose ledger this user may read (memlog run and MTRACE_LEDGER make processes keep
one): those named by PID or NAME or, without operands, all, also those that start later. A DIR or
FILE is served as reports. The processes are only read: not stopped, not signalled.

  /                              the page
  /metrics                       metrics for Prometheus
  /debug/pprof/heap?pid=PID      what is live, for go tool pprof and others
  /debug/pprof/allocs?pid=PID    what was allocated; with seconds=N only
                                 what changed in N seconds from now
  /api/openapi.json              describes the REST interface

Listens on the loopback interface unless told otherwise. Any other address needs --token-file, and
then requests the header "Authorization: Bearer TOKEN"; or --client-ca, and then clients a
certificate. The connection is encrypted with --tls-cert and --tls-key. doc/serve.md has a
configuration for Prometheus, certificates and a systemd unit.
)";

constexpr Option kOwnOptions[] = {
    {"--listen", "-l", "ADDRESS",
     R"(Where to listen: IP:PORT, or unix:PATH for a Unix socket that only this user may open. Port 0:
     any free one. Default 127.0.0.1:7040.)"},
    {"--top", "", "N",
     R"(Functions of each process with a series of their own in /metrics; the series "other" has the
     rest. Default 20.)"},
    {"--token-file", "", "FILE",
     R"(Ask for the token in the first line of FILE, which only its owner may read.)"},
    {"--tls-cert", "", "FILE",
     R"(Encrypt with the certificate in FILE (PEM), those that signed it behind it. Needs --tls-key.)",
     "", "--tls-key"},
    {"--tls-key", "", "FILE",
     R"(The private key of the certificate (PEM), which not everybody may read.)", "",
     "--tls-cert"},
    {"--client-ca", "", "FILE",
     R"(Answer only clients whose certificate one of the authorities in FILE (PEM) has signed. Needs
     --tls-cert.)",
     "", "--tls-cert"},
    {"--max-connections", "", "N",
     R"(Connections at a time, each with a thread; a further one gets status 503. Default 64.)"},
    {"--max-rate", "", "N",
     R"(Requests a second of one IP address, and twice as many at once; a further one gets status 429.
     0: no limit. Default 100.)"},
    {"--allow-host", "", "NAME",
     R"(Also answer requests that call this server NAME. Others are refused, so that no web page
     reaches it by a name of its own. May be repeated.)"},
    {"--allow-actions", "", "",
     R"(Also serve POST requests that make a process write a report, attach to it, detach, or watch
     which of its blocks expire.)"},
    {"--receive", "", "DIR",
     R"(Take the reports that memlog push sends, each once, and the event logs of memlog run --to; keep
     them in DIR, a directory for each host. doc/fleet.md.)"},
    {"--announce", "", "",
     R"(Answer memlog collect --discover, which asks by multicast on the local network: address,
     version and the name of this machine. Needs --listen with an IPv4 address of this machine.)"},
};

std::vector<Option> serve_options() {
  std::vector<Option> all(std::begin(kOwnOptions), std::end(kOwnOptions));
  all.insert(all.end(), {kMaxDiskOption, kMaxAgeOption, kLibraryOption, kOwnOption, kSysrootOption,
                         kSymbolsOption});
  return all;
}

serve::ListenAddress read_listen(const Arguments& arguments) {
  try {
    return serve::read_address(arguments.value("--listen", "127.0.0.1:7040"));
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("serve: --listen {}", error.what()));
  }
}

serve::TlsFiles read_tls(const Arguments& arguments) {
  const serve::TlsFiles tls = {arguments.value("--tls-cert"), arguments.value("--tls-key"),
                               arguments.value("--client-ca")};
  struct stat info = {};
  if (!tls.key.empty() && ::stat(tls.key.c_str(), &info) == 0 && (info.st_mode & 07) != 0) {
    throw std::runtime_error(
        fmt::format("{}: every user may read the private key: chmod o-rwx it", tls.key));
  }
  return tls;
}

serve::AccessRules read_rules(const Arguments& arguments, const serve::TlsFiles& tls) {
  serve::AccessRules rules;
  rules.address = read_listen(arguments);
  rules.address.tls = !tls.certificate.empty();
  rules.certificates = !tls.client_ca.empty();
  if (rules.address.tls && rules.address.is_unix()) {
    throw UsageError("serve: --tls-cert is not for a Unix socket, which only this user may open");
  }
  rules.hosts = arguments.values("--allow-host");
  rules.actions = arguments.has("--allow-actions");
  rules.receives = arguments.has("--receive");
  if (arguments.has("--token-file")) {
    rules.token = fleet::read_token(arguments.value("--token-file"));
  } else if (!rules.address.is_local() && !rules.certificates) {
    throw UsageError(fmt::format(
        "serve: {} can be reached from other machines: --token-file or --client-ca is required",
        rules.address.text()));
  }
  return rules;
}

// Answers who looks for servers on the network. nullptr: that is not wanted.
std::unique_ptr<serve::Announcer> announcer_of(const Arguments& arguments,
                                               const serve::ListenAddress& address) {
  if (!arguments.has("--announce")) return nullptr;
  utsname names = {};
  ::uname(&names);
  return std::make_unique<serve::Announcer>(
      serve::Announcement{address.host, address.port, address.tls, MTRACE_VERSION, names.nodename});
}

serve::Limits read_limits(const Arguments& arguments) {
  constexpr long kMostConnections = 4096;  // threads
  serve::Limits limits;
  limits.connections = static_cast<size_t>(arguments.number(
      "--max-connections", static_cast<long>(limits.connections), 1, kMostConnections));
  limits.rate = static_cast<double>(
      arguments.number("--max-rate", static_cast<long>(limits.rate), 0, 1'000'000));
  return limits;
}

// Sorts the operands into processes and reports.
serve::SiteOptions read_site(const Arguments& arguments) {
  serve::SiteOptions options;
  options.all = arguments.operands().empty();
  options.top = static_cast<size_t>(arguments.number("--top", 20, 0, 10000));
  options.where = search_path(arguments);
  options.responsible = read_responsible(arguments);
  options.metered = read_responsible(arguments);
  for (const std::string& operand : arguments.operands()) {
    const bool is_program = process::is_program_file(operand);
    if (std::filesystem::exists(operand) && !is_program) {
      options.reports.push_back(std::filesystem::absolute(operand).lexically_normal());
      continue;
    }
    const std::vector<pid_t> pids = process::find_processes(operand);
    if (pids.empty()) {
      throw std::runtime_error(is_program
                                   ? process::no_process_text(operand)
                                   : fmt::format("no process, file or directory {}", operand));
    }
    options.pids.insert(options.pids.end(), pids.begin(), pids.end());
  }
  if (arguments.has("--receive")) {
    options.store =
        std::make_unique<fleet::Store>(arguments.value("--receive"), read_store_limits(arguments));
  }
  return options;
}

// Loads memlog-http.so, which stays loaded, and returns a server. Throws std::runtime_error when it
// is not installed or a library that it needs is missing, or a file of `tls` cannot be used.
std::unique_ptr<serve::HttpServer> load_http_server(serve::Handler handler,
                                                    const serve::Limits& limits,
                                                    const serve::TlsFiles& tls) {
  void* const make = fleet::http_module_function(serve::kMakeHttpServer, "server");
  std::unique_ptr<serve::HttpServer> server;
  reinterpret_cast<serve::MakeHttpServer*>(make)(std::move(handler), limits, tls, server);
  return server;
}

// A text in memory that a command writes to.
class Captured {
 public:
  Captured() : stream_(::open_memstream(&text_, &size_)) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~Captured() {
    std::fclose(stream_);
    std::free(text_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  FILE* stream() const { return stream_; }
  std::string text() const {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  FILE* stream_;
};

serve::CommandAnswer run_here(const Command& command, const Arguments& given) {
  const Captured out;
  const Captured err;
  const Ended ended = run(command, given, {out.stream(), err.stream(), false});
  return {ended, out.text(), err.text()};
}

// Blocks the signals that end the server, in this thread and in those that it starts.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Each process takes three descriptors.
void raise_file_limit() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// Connections have threads, but stacks are read under one lock. With an arena for each thread, what
// one answer has freed would not serve the next: 30 MB an answer, for sixteen arenas.
void use_one_arena() { ::mallopt(M_ARENA_MAX, 1); }

int run_serve(const Arguments& arguments, const Streams& streams) {
  const serve::TlsFiles tls = read_tls(arguments);
  serve::AccessRules rules = read_rules(arguments, tls);
  if (arguments.has("--announce") && !serve::can_announce(rules.address.host)) {
    throw UsageError("serve: --announce needs --listen with an IPv4 address of this machine");
  }
  serve::SiteOptions options = read_site(arguments);
  raise_file_limit();
  use_one_arena();
  const sigset_t signals = block_signals();
  const serve::Listener listener(rules.address);
  rules.address = listener.address();
  serve::Site site(std::move(options), serve::Access(std::move(rules)), run_here);
  const auto server =
      load_http_server([&](const serve::Request& request) { return site.answer(request); },
                       read_limits(arguments), tls);
  const auto announcer = announcer_of(arguments, listener.address());
  print(streams, fmt::format("listening at {}\n", listener.address().text()));
  std::fflush(streams.out);
  std::promise<void> served;
  std::thread end([&] {
    constexpr std::chrono::milliseconds kPatience{700};
    int signal = 0;
    ::sigwait(&signals, &signal);
    site.stop();
    server->stop();
    // An answer that takes longer is not waited for.
    if (served.get_future().wait_for(kPatience) == std::future_status::ready) return;
    std::fflush(streams.out);
    std::_Exit(kGood);
  });
  server->serve(::dup(listener.descriptor()));
  served.set_value();
  end.join();
  return kGood;
}

}  // namespace

const Command& serve_command() {
  static const Command command = {
      {"serve", "serve a page, metrics and profiles of running processes over HTTP",
       "[OPTION]... [PID|NAME|DIR|FILE]...", kServeHelp, serve_options(),
       R"(0: ended by SIGINT, SIGTERM or SIGHUP; 1: cannot listen there, the token cannot be read,
       or an operand does not exist; 2: wrong command line.)",
       R"(  memlog serve
  memlog serve --listen unix:/run/mtrace/serve.sock nginx
  memlog serve --listen 0.0.0.0:7040 --token-file token --allow-host web3 \
    --tls-cert web3.pem --tls-key web3.key
  memlog serve --receive /srv/memlogs --max-disk 50G --max-age 30d
  curl -s http://127.0.0.1:7040/metrics
  go tool pprof 'http://127.0.0.1:7040/debug/pprof/heap?pid=4711'
)"},
      run_serve};
  return command;
}

}  // namespace mtrace::cli
