#!/usr/bin/python3 -B
"""client.py KIND PORT REQUESTS [ARGUMENT]: a small load for a server on the loopback interface.

Four threads share REQUESTS requests and wait some milliseconds between them, so that the load
takes about as long whatever the machine does. Prints how many answers of which kind came; each
answer is compared with what must come. Kinds: http (ARGUMENT: path), proxy (through the port, to
a server of its own), memcached, redis, fcgi (path of a script), echo.
"""
import collections
import hashlib
import http.client
import http.server
import socket
import struct
import sys
import threading
import time

PAUSE = 0.008
SECONDS = 30  # one answer may take


class Line:
    """A connection that is read by lines or by lengths."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self.file = self.socket.makefile("rb")

    def ask(self, data):
        self.socket.sendall(data)
        return self.file.readline()


def http_get(port, path, keep=None):
    connection = keep or http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if not keep:
        connection.close()
    return f"{answer.status} {len(body)} {hashlib.sha256(body).hexdigest()[:12]}"


def http_worker(port, path, count, add):
    for number in range(count):
        add(http_get(port, path))
        time.sleep(PAUSE)


class Origin(http.server.BaseHTTPRequestHandler):
    """What the proxy is asked for: each path has its own content."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = hashlib.sha256(self.path.encode()).hexdigest().encode() * 40
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def proxy_worker(port, origin, count, add):
    for number in range(count):
        path = f"/page{number % 50}"
        answer = http_get(port, f"http://127.0.0.1:{origin}{path}")
        body = hashlib.sha256(path.encode()).hexdigest().encode() * 40
        good = answer == f"200 {len(body)} {hashlib.sha256(body).hexdigest()[:12]}"
        add("right" if good else f"wrong: {answer.split()[0]}")
        time.sleep(PAUSE)


def memcached_worker(port, name, count, add):
    line = Line(port)
    for number in range(count):
        value = f"{name}-{number}".encode() * (1 + number % 50)
        stored = line.ask(b"set %s%d 0 0 %d\r\n%s\r\n" % (name.encode(), number % 100, len(value),
                                                          value))
        header = line.ask(b"get %s%d\r\n" % (name.encode(), number % 100))
        found = line.file.readline()
        line.file.readline()
        add(f"{stored!r} {header[:5]!r} {found == value + bytes((13, 10))}")
        time.sleep(PAUSE)


def redis_worker(port, name, count, add):
    line = Line(port)
    for number in range(count):
        value = f"{name}-{number}" * (1 + number % 50)
        key = f"{name}{number % 100}"
        set_ = line.ask(f"SET {key} {value}\r\n".encode())
        line.ask(f"GET {key}\r\n".encode())
        found = line.file.readline().decode().strip()
        pushed = line.ask(f"LPUSH list{name} {value}\r\n".encode())
        add(f"{set_!r} {found == value} {pushed[:1]!r}")
        time.sleep(PAUSE)


def echo_worker(port, name, count, add):
    for number in range(count):
        line = Line(port)
        text = f"{name} {number}\n".encode()
        add(f"{line.ask(text) == text}")
        line.socket.close()
        time.sleep(PAUSE)


def fcgi_worker(port, script, count, add):
    def record(kind, content):
        return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content

    def pair(name, value):
        return bytes([len(name), len(value)]) + name.encode() + value.encode()

    parameters = pair("SCRIPT_FILENAME", script) + pair("REQUEST_METHOD", "GET") + \
        pair("SCRIPT_NAME", "/a.php") + pair("QUERY_STRING", "n=1")
    for _ in range(count):
        line = Line(port)
        line.socket.sendall(record(1, struct.pack(">HB5x", 1, 0)) + record(4, parameters) +
                            record(4, b"") + record(5, b""))
        output = b""
        while True:
            header = line.file.read(8)
            if len(header) < 8:
                add("cut")
                break
            _, kind, _, length, padding = struct.unpack(">BBHHBx", header)
            content = line.file.read(length + padding)[:length]
            if kind == 6:
                output += content
            elif kind == 3:
                body = output.partition(b"\r\n\r\n")[2]
                add(f"{len(body)} {hashlib.sha256(body).hexdigest()[:12]}")
                break
        line.socket.close()
        time.sleep(PAUSE)


def main():
    kind, port, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    argument = sys.argv[4] if len(sys.argv) > 4 else ""
    if kind == "proxy":
        origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
        origin.daemon_threads = True
        threading.Thread(target=origin.serve_forever, daemon=True).start()
        argument = origin.server_address[1]
    counts = collections.Counter()
    lock = threading.Lock()

    def add(answer):
        with lock:
            counts[answer] += 1

    def work(name):
        what = argument if kind in ("http", "proxy", "fcgi") else name
        try:
            globals()[f"{kind}_worker"](port, what, requests // 4, add)
        except (OSError, http.client.HTTPException) as error:
            add(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer, count in sorted(counts.items()):
        print(f"{count} x {answer}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
