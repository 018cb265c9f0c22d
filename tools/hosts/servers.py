"""servers.py: hosts that serve, on the loopback interface or a Unix socket, with a client each."""
from host import Host

CLIENT = ["/usr/bin/python3", "-B", "/tmp/mtrace/client.py"]
PG = "/usr/lib/postgresql/15/bin"


def load(kind, port, argument=None):
    return [*CLIENT, kind, str(port), "@N@"] + ([argument] if argument else [])


APACHE = """
ServerRoot /etc/apache2
ServerName localhost
PidFile /tmp/host/pid
Mutex file:/tmp/run
ErrorLog /tmp/host/error.log
Listen 127.0.0.1:8080
User www-data
Group www-data
%s
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
LoadModule rewrite_module /usr/lib/apache2/modules/mod_rewrite.so
TypesConfig /etc/mime.types
DocumentRoot /tmp/host/www
<Directory /tmp/host/www>
Require all granted
</Directory>
"""
APACHE_EVENT = APACHE % "LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so"
APACHE_PREFORK = APACHE % ("LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so"
                           "\nMaxConnectionsPerChild 40")
PAGE = "<html>" + "<p>some text</p>" * 200 + "</html>\n"
NGINX = """
daemon off; pid /tmp/host/pid; error_log /tmp/host/error.log; worker_processes 2; user www-data;
events { worker_connections 100; }
http { access_log off; client_body_temp_path /tmp/host/body; proxy_temp_path /tmp/host/proxy;
  fastcgi_temp_path /tmp/host/fcgi; scgi_temp_path /tmp/host/scgi; uwsgi_temp_path /tmp/host/uwsgi;
  gzip on; server { listen 127.0.0.1:8080; root /tmp/host/www; } }
"""
LIGHTTPD = """
server.document-root = "/tmp/host/www"
server.port = 8080
server.bind = "127.0.0.1"
server.errorlog = "/tmp/host/error.log"
"""
HAPROXY = """
global
  stats socket /tmp/host/stats
  nbthread 2
defaults
  mode http
  timeout client 10s
  timeout server 10s
  timeout connect 10s
frontend a
  bind 127.0.0.1:8080
  default_backend b
backend b
  server s 127.0.0.1:8081
frontend c
  bind 127.0.0.1:8081
  http-request return status 200 content-type text/plain string "some text from the proxy"
"""
VCL = """
vcl 4.1;
backend default none;
sub vcl_synth { set resp.body = "some fixed text"; return (deliver); }
sub vcl_recv { if (req.url ~ "^/hit") { return (hash); } return (synth(200, "made")); }
"""
VARNISH = """
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "8081"; }
"""
SQUID = """
http_port 127.0.0.1:8080
http_access allow all
pid_filename /tmp/host/pid
cache_log /tmp/host/cache.log
access_log none
cache_mem 16 MB
cache_effective_user proxy
coredump_dir /tmp/host
visible_hostname localhost
pinger_enable off
shutdown_lifetime 1 second
max_filedescriptors 1024
"""
# Without validation: named says one to three times, plain, that it cannot fetch the root's keys.
NAMED = """
options { dnssec-validation no; directory "/tmp/host";
  listen-on port 5353 { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; pid-file "/tmp/host/pid"; session-keyfile "/tmp/host/session.key"; };
controls { };
zone "example.test" { type primary; file "zone"; };
"""
ZONE = "$TTL 300\n@ IN SOA ns hostmaster 1 300 300 300 300\n@ IN NS ns\nns IN A 127.0.0.1\n" + \
    "".join(f"h{i} IN A 10.0.{i // 250}.{i % 250}\n" for i in range(1000))
RSYSLOG = """
global(workDirectory="/tmp/host")
module(load="imtcp")
input(type="imtcp" port="5514" address="127.0.0.1")
*.* action(type="omfile" file="/tmp/host/messages")
"""
# Its daemons run in a root of their own, and keep only these variables.
POSTFIX = """
compatibility_level = 3.6
queue_directory = /tmp/host/queue
data_directory = /tmp/host/data
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = host.example.test
mydestination =
maillog_file = /dev/stdout
virtual_mailbox_domains = example.test
virtual_mailbox_maps = static:all/
virtual_mailbox_base = /tmp/host/mail
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
import_environment = MAIL_CONFIG MAIL_LOGTAG LANG=C TZ LD_PRELOAD MTRACE_OUTPUT MTRACE_SIGNAL
  MTRACE_LEDGER MTRACE_EVENTS MTRACE_MMAP MTRACE_SAMPLE MTRACE_HOLD_EXIT MTRACE_RESOLVER
"""
POSTFIX_PREPARE = "mkdir -p queue/etc data mail && chown postfix data && chown nobody mail && " \
    "cp /etc/services /etc/hosts queue/etc && sed 's/^smtp  *inet/2525 inet/' " \
    "/etc/postfix/master.cf >etc/master.cf && cp /etc/postfix/dynamicmaps.cf etc"
SAMBA = """
[global]
  smb ports = 4450
  interfaces = lo
  bind interfaces only = yes
  server role = standalone server
  map to guest = Bad User
  guest account = nobody
  private dir = /tmp/host/private
  lock directory = /tmp/host/lock
  state directory = /tmp/host/state
  cache directory = /tmp/host/cache
  pid directory = /tmp/host/pid
  ncalrpc dir = /tmp/host/ncalrpc
  log file = /tmp/host/log.%m
  disable netbios = yes
  load printers = no
  printcap name = /dev/null
[share]
  path = /tmp/host/share
  guest ok = yes
"""
UNBOUND = """
server:
  interface: 127.0.0.1@5353
  do-daemonize: no
  chroot: ""
  username: ""
  pidfile: "/tmp/host/pid"
  directory: "/tmp/host"
  use-syslog: no
  logfile: "/tmp/host/log"
  num-threads: 2
  local-zone: "example.test." static
""" + "".join(f'  local-data: "h{i}.example.test. A 10.0.0.{i}"\n' for i in range(200))
DIG = ("for i in $(seq @N@); do dig +short +tries=1 +time=10 -p 5353 @127.0.0.1 "
       "h$((i % 100)).example.test; done")
SSHD = """
Port 2222
ListenAddress 127.0.0.1
HostKey /tmp/host/host_key
AuthorizedKeysFile /tmp/host/authorized
StrictModes no
PidFile /tmp/host/pid
UsePAM no
LogLevel ERROR
"""
SSHD_PREPARE = ("mkdir -p /run/sshd && ssh-keygen -q -t ed25519 -N '' -f host_key && "
                "ssh-keygen -q -t ed25519 -N '' -f key && cp key.pub authorized")
SSH = ("ssh -F none -q -i key -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
       "-o BatchMode=yes root@127.0.0.1")
SQL = """
create table t (id int primary key, name varchar(200), n int);
insert into t select g, repeat(md5(g::text), 3), g % 97 from generate_series(1, 20000) g;
create index on t (name);
select n, count(*), max(name) from t group by n order by n limit 5;
update t set name = name || 'x' where n < 50;
select count(*), sum(length(name)) from t;
delete from t where n = 3;
vacuum analyze t;
select count(*) from t a join t b on a.n = b.id;
"""
MARIA_SQL = """
create database d; use d;
create table t (id int primary key auto_increment, name varchar(200), n int, index (name));
insert into t (name, n) select repeat(md5(seq), 3), seq % 97 from seq_1_to_5000;
select n, count(*), max(name) from t group by n order by n limit 5;
update t set name = concat(name, 'x') where n < 50;
select count(*), sum(length(name)) from t;
delete from t where n = 3;
select count(*) from t a join t b on a.n = b.id;
drop database d;
"""
SLAPD = """
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile /tmp/host/pid
database mdb
suffix "dc=test"
rootdn "cn=admin,dc=test"
rootpw secret
directory /tmp/host/db
maxsize 10485760
"""
LDIF = "dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\no: test\ndc: test\n\n" + \
    "".join(f"dn: cn=p{i},dc=test\nobjectClass: person\ncn: p{i}\nsn: s{i}\n\n" for i in range(200))
DBUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=/tmp/host/bus</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>
"""
PHP_PAGE = """<?php
$a = []; for ($i = 0; $i < 2000; $i++) $a[] = md5("x$i"); sort($a);
echo json_encode(array_slice($a, 0, 50));
"""
PHP_FPM = """
[global]
error_log = /tmp/host/error.log
daemonize = no
[www]
user = www-data
group = www-data
listen = 127.0.0.1:9000
pm = dynamic
pm.max_children = 5
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
pm.max_requests = 60
"""
NODE_SERVER = """
const http = require('http');
const server = http.createServer((request, answer) => {
  const words = []; for (let i = 0; i < 300; ++i) words.push('word' + i);
  answer.end(JSON.stringify(words));
}).listen(8080, '127.0.0.1');
process.on('SIGTERM', () => { server.close(); server.closeAllConnections?.(); });
"""
PYTHON_SERVER = """
import http.server, signal, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ",".join("word%d" % i for i in range(500)).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
"""
RSYNCD = """
use chroot = no
log file = /tmp/host/log
port = 8730
address = 127.0.0.1
[data]
path = /usr/share/perl/5.36
read only = yes
"""
DOVECOT = """
protocols = imap
listen = 127.0.0.1
base_dir = /run/dovecot
log_path = /tmp/host/log
ssl = no
disable_plaintext_auth = no
service imap-login {
  inet_listener imap {
    port = 1143
  }
  inet_listener imaps {
    port = 0
  }
}
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=/tmp/host/mail
}
mail_location = maildir:/tmp/host/mail/Maildir
first_valid_uid = 1
"""
IMAP = """
import imaplib
for i in range(@N@):
    c = imaplib.IMAP4("127.0.0.1", 1143)
    print(c.login("user", "secret")[0], c.select("INBOX")[0],
          c.append("INBOX", None, None, b"Subject: x\\r\\n\\r\\n" + b"text " * 500)[0],
          c.search(None, "SUBJECT", "x")[0], c.logout()[0])
"""
WWW = {"www/index.html": PAGE}

HOSTS = [
    Host("apache", ["apache2", "-f", "/tmp/host/conf", "-DFOREGROUND"], ["apache2"],
         files={"conf": APACHE_EVENT, **WWW}, ready=8080, client=load("http", 8080, "/"), n=800,
         stop="TERM"),
    Host("apache-prefork", ["apache2", "-f", "/tmp/host/conf", "-DFOREGROUND"], ["apache2"],
         files={"conf": APACHE_PREFORK, **WWW}, ready=8080, client=load("http", 8080, "/"), n=600),
    # A worker that is forked after the attach cannot remove its ledger, which was made before it
    # became www-data (doc/internals/attach.md).
    Host("nginx", ["nginx", "-c", "/tmp/host/conf"], ["nginx-light"], files={"conf": NGINX, **WWW},
         ready="[ $(grep -l 'nginx: worke[r]' /proc/[0-9]*/cmdline | wc -l) = 2 ]",
         client=load("http", 8080, "/"), n=1000, quick=80, stop="QUIT"),
    Host("lighttpd", ["lighttpd", "-D", "-f", "/tmp/host/conf"], ["lighttpd"],
         files={"conf": LIGHTTPD, **WWW}, ready=8080, client=load("http", 8080, "/index.html"),
         n=1000),
    Host("haproxy", ["haproxy", "-W", "-db", "-f", "/tmp/host/conf"], ["haproxy"],
         files={"conf": HAPROXY}, ready=8080, client=load("http", 8080, "/"), n=800),
    Host("varnish", ["varnishd", "-F", "-f", "/tmp/host/a.vcl", "-a", "127.0.0.1:8080",
                     "-n", "/tmp/host/work", "-s", "malloc,20m"], ["varnish"],
         files={"a.vcl": VCL}, ready=8080, client=load("http", 8080, "/made"), n=800, seconds=120),
    Host("squid", ["squid", "-N", "-f", "/tmp/host/conf"], ["squid"],
         prepare="chown proxy /tmp/host", files={"conf": SQUID}, ready=8080,
         client=load("proxy", 8080), n=600, seconds=90),
    Host("squid-workers", ["squid", "--foreground", "-f", "/tmp/host/conf"], ["squid"],
         prepare="chown proxy /tmp/host", files={"conf": SQUID}, ready=8080,
         client=load("proxy", 8080), n=600, seconds=90),
    Host("named", ["named", "-g", "-c", "/tmp/host/conf"], ["bind9", "bind9-dnsutils"],
         files={"conf": NAMED, "zone": ZONE},
         ready="dig +tries=1 +time=1 -p 5353 @127.0.0.1 h1.example.test | grep -q 10.0.0.1",
         client=DIG, n=25),
    Host("named-chroot", ["named", "-g", "-t", "/tmp/host", "-u", "bind", "-c", "/conf"],
         ["bind9", "bind9-dnsutils"],
         files={"conf": NAMED.replace("/tmp/host/", "/").replace("/tmp/host", "/"), "zone": ZONE},
         prepare="mkdir dev && mknod dev/null c 1 3 && chmod 666 dev/null && chown -R bind .",
         ready="dig +tries=1 +time=1 -p 5353 @127.0.0.1 h1.example.test | grep -q 10.0.0.1",
         client=DIG, n=25),
    Host("rsyslogd", ["rsyslogd", "-n", "-f", "/tmp/host/conf", "-i", "/tmp/host/pid"],
         ["rsyslog"], files={"conf": RSYSLOG}, ready="/tmp/host/pid", n=200,
         client="for i in $(seq @N@); do logger -n 127.0.0.1 -P 5514 -T -t host \"message $i\"; done; "
         "sleep 1; wc -l <messages", ignored="messages"),
    Host("smbd", ["smbd", "-F", "--no-process-group", "-s", "/tmp/host/conf"],
         ["samba", "smbclient"], files={"conf": SAMBA, "share/a.txt": PAGE * 20}, ready=4450, n=8,
         prepare="mkdir private lock state cache pid ncalrpc", ignored="(private|lock|state|cache|log|"
         "pid|ncalrpc)", client="for i in $(seq @N@); do smbclient -s conf -p 4450 -N "
         "//127.0.0.1/share -c 'get a.txt -' 2>/dev/null | md5sum; done", status="signal 15", seconds=90),
    Host("postfix", ["postfix", "-c", "/tmp/host/etc", "start-fg"], ["postfix", "curl"], n=20,
         files={"etc/main.cf": POSTFIX, "a.txt": PAGE}, prepare=POSTFIX_PREPARE, ready=2525,
         client="for i in $(seq @N@); do curl -s smtp://127.0.0.1:2525 --mail-from a@example.test "
         "--mail-rcpt b@example.test -T a.txt || exit 1; done; until [ $(ls mail/all/new | wc -l) = "
         "@N@ ]; do sleep 0.05; done", ignored="(queue|data|mail)(/|$)", seconds=90,
         stop="postfix -c /tmp/host/etc stop", status="exit 143"),
    Host("unbound", ["unbound", "-d", "-c", "/tmp/host/conf"], ["unbound", "bind9-dnsutils"],
         files={"conf": UNBOUND},
         ready="dig +tries=1 +time=1 -p 5353 @127.0.0.1 h1.example.test | grep -q 10.0.0.1",
         client=DIG, n=25),
    Host("dnsmasq", ["dnsmasq", "-k", "-C", "/dev/null", "-p", "5353", "--no-resolv", "--no-hosts",
                     "--listen-address=127.0.0.1", "--bind-interfaces", "-u", "root",
                     "--address=/example.test/10.0.0.1", "-x", "/tmp/host/pid"],
         ["dnsmasq", "bind9-dnsutils"],
         ready="dig +tries=1 +time=1 -p 5353 @127.0.0.1 h1.example.test | grep -q 10.0.0.1",
         client=DIG, n=25),
    Host("sshd", ["/usr/sbin/sshd", "-D", "-e", "-f", "/tmp/host/conf"],
         ["openssh-server", "openssh-client"], files={"conf": SSHD}, prepare=SSHD_PREPARE,
         ready=2222, n=8, client=f"for i in $(seq @N@); do {SSH} 'echo $((6 * 7)); seq 1000 | "
         f"md5sum'; done; dd if=/dev/zero bs=1k count=2000 2>/dev/null | {SSH} md5sum",
         stop="TERM"),
    Host("postgresql", [f"{PG}/postgres", "-D", "/tmp/host/data", "-k", "/tmp/host", "-h",
                        "127.0.0.1"], ["postgresql-15"], user="postgres",
         prepare=f"{PG}/initdb -D data -A trust -N >/dev/null", ignored="data/",
         ready="grep -q 'ready to accept' /tmp/log/host.err",
         files={"a.sql": SQL}, client=f"for i in $(seq @N@); do {PG}/psql -q -h /tmp/host -d "
         f"postgres -f a.sql && {PG}/psql -q -h /tmp/host -d postgres -c 'drop table t'; done",
         client_user="postgres", n=3, stop="INT", seconds=120),
    Host("initdb", [f"{PG}/initdb", "-D", "/tmp/host/data", "-A", "trust"], ["postgresql-15"],
         user="postgres", seconds=120, ignored="data/"),
    Host("mariadb", ["mariadbd", "--no-defaults", "--user=mysql", "--datadir=/tmp/host/data",
                     "--socket=/tmp/host/socket", "--bind-address=127.0.0.1", "--port=3307",
                     "--pid-file=/tmp/host/pid"], ["mariadb-server"],
         prepare="mkdir data && chown mysql data . && mariadb-install-db --no-defaults "
                 "--user=mysql --datadir=/tmp/host/data --skip-test-db >/dev/null 2>&1",
         files={"a.sql": MARIA_SQL}, ready="mariadb-admin --no-defaults -S socket ping >/dev/null "
         "2>&1", client="for i in $(seq @N@); do mariadb --no-defaults -S socket < a.sql; done",
         n=4, seconds=120, start_seconds=60, ignored="data/"),
    Host("redis", ["redis-server", "--port", "6380", "--bind", "127.0.0.1", "--save", "",
                   "--daemonize", "no"], ["redis-server"], ready=6380,
         client=load("redis", 6380), n=800),
    Host("redis-save", ["redis-server", "--port", "6380", "--bind", "127.0.0.1", "--save", "1 10",
                        "--appendonly", "yes", "--loglevel", "warning"],
         ["redis-server"], ready=6380,
         client=load("redis", 6380), n=800),
    Host("memcached", ["memcached", "-p", "11222", "-l", "127.0.0.1", "-u", "nobody", "-U", "0"],
         ["memcached"], ready=11222, client=load("memcached", 11222), n=800),
    Host("slapd", ["slapd", "-d", "0", "-f", "/tmp/host/conf", "-h", "ldap://127.0.0.1:3890"],
         ["slapd", "ldap-utils"], files={"conf": SLAPD, "a.ldif": LDIF, "db/empty": ""}, ready=3890,
         client="ldapadd -x -H ldap://127.0.0.1:3890 -D cn=admin,dc=test -w secret -f a.ldif | "
         "tail -1; for i in $(seq @N@); do ldapsearch -x -LLL -H ldap://127.0.0.1:3890 -b dc=test "
         "cn=p$i sn; done", n=60),
    Host("mosquitto", ["mosquitto", "-p", "1884"], ["mosquitto", "mosquitto-clients"], ready=1884,
         client="mosquitto_sub -p 1884 -t a -C @N@ & sleep 0.5; for i in $(seq @N@); do "
         "mosquitto_pub -p 1884 -q 1 -t a -m \"message $i\"; done; wait", n=80),
    Host("dbus-daemon", ["dbus-daemon", "--nofork", "--config-file=/tmp/host/conf"], ["dbus"],
         files={"conf": DBUS}, ready="/tmp/host/bus", n=100,
         client="for i in $(seq @N@); do dbus-send --bus=unix:path=/tmp/host/bus --print-reply "
         "--dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId | wc -l; done"),
    # -noreset: else it drops who connects between the last client's end and its own look at that,
    # plain as well, whenever it stands still for a moment (kill -STOP).
    Host("xvfb", ["Xvfb", ":7", "-noreset", "-screen", "0", "640x480x24", "-nolisten", "tcp"],
         ["xvfb", "x11-apps"], ready="/tmp/.X11-unix/X7", n=30,
         client="export DISPLAY=:7; for i in $(seq @N@); do xwd -root | md5sum; xlsclients; done; "
         "timeout 1 xeyes; xlogo & sleep 0.5; kill $!"),
    Host("php-server", ["php", "-S", "127.0.0.1:8080", "-t", "/tmp/host/www"], ["php-cli"],
         files={"www/a.php": PHP_PAGE}, ready=8080, client=load("http", 8080, "/a.php"), n=400,
         status="signal 15"),
    Host("php-fpm", ["php-fpm8.2", "-F", "-y", "/tmp/host/conf"], ["php-fpm"],
         files={"conf": PHP_FPM, "a.php": PHP_PAGE}, ready=9000,
         client=load("fcgi", 9000, "/tmp/host/a.php"), n=400),
    Host("node-http", ["/usr/bin/node", "a.js"], ["nodejs"], files={"a.js": NODE_SERVER},
         ready=8080, client=load("http", 8080, "/"), n=800),
    Host("python-http", ["/usr/bin/python3", "a.py"], ["python3"], files={"a.py": PYTHON_SERVER},
         ready=8080, client=load("http", 8080, "/"), n=600),
    Host("iperf3", ["iperf3", "-s", "-B", "127.0.0.1", "-1", "-i", "0"], ["iperf3"],
         ready="grep -q ' 0100007F:1451 ' /proc/net/tcp",
         client="sleep 0.2; iperf3 -c 127.0.0.1 -n 2G -P 3 | grep -c sender",
         stop="true"),  # it ends by itself
    Host("socat", ["socat", "TCP-LISTEN:7007,bind=127.0.0.1,fork,reuseaddr", "EXEC:cat"],
         ["socat"], ready=7007, client=load("echo", 7007), n=120, status="exit 143"),
    Host("rsyncd", ["rsync", "--daemon", "--no-detach", "--config=/tmp/host/conf"], ["rsync"],
         files={"conf": RSYNCD}, ready=8730, n=4,
         client="for i in $(seq @N@); do rsync -a rsync://127.0.0.1:8730/data/ copy$i/; "
         "ls -R copy$i | md5sum; rm -r copy$i; done"),
    Host("dovecot", ["dovecot", "-F", "-c", "/tmp/host/conf"], ["dovecot-core", "dovecot-imapd"],
         files={"conf": DOVECOT, "a.py": IMAP, "mail/empty": ""}, ready=1143, n=15,
         prepare="chown -R nobody mail", client="/usr/bin/python3 a.py"),
    Host("tmux", ["sh", "-c", "tmux -S /tmp/host/s -f /dev/null new-session -d 'for i in $(seq "
                  "300); do echo line $i; done; sleep 1; echo done > done; sleep 600' && for i in "
                  "$(seq @N@); do tmux -S s new-window -d 'seq 2000'; tmux -S s list-windows | wc "
                  "-l >/dev/null; done; sleep 1.5; tmux -S s capture-pane -p -t 0 | tail -3; "
                  "tmux -S s kill-server; cat done"], ["tmux"], n=20),
    Host("screen", ["sh", "-c", "screen -c /dev/null -dmS work sh -c 'seq 1000; sleep 1; echo done "
                    "> done; sleep 1'; sleep 0.5; screen -ls | grep -c work; for i in $(seq @N@); "
                    "do screen -S work -X echo x; done; sleep 2; cat done"], ["screen"], n=10,
         env={"SCREENDIR": "/tmp/run", "TERM": "vt100"}),
]
for host in HOSTS:
    host.kind = "server"
