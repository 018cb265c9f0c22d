"""Allocates blocks of sizes that nobody else asks for, through every kind of call that Python has,
and prints the stack of each as the interpreter itself knows it:

    block SIZE
    frame FUNCTION<tab>FILE<tab>LINE      innermost first

Arguments: about how many lines to print; "yield": calls sched_yield() at each, for a debugger;
"wait": says "waiting" before it begins and "live" when all is allocated, and waits for a line then;
"seed=N": other calls.
"""
import asyncio
import contextlib
import ctypes
import functools
import os
import random
import re
import signal
import sys
import threading

SMALLEST = 100_000  # bytes
lock = threading.Lock()
lines = []
kept = []


def told():
    """Writes down the stack of the caller. The size of the block that its line allocates next."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        found.append(f"frame {code.co_qualname}\t{code.co_filename}\t{frame.f_lineno}")
        frame = frame.f_back
    with lock:
        size = SMALLEST + len(kept)
        kept.append(None)
        if "yield" in sys.argv:
            ctypes.CDLL(None).sched_yield()
        lines.append(f"block {size}")
        lines.extend(found)
    return size - 1  # a bytearray takes one byte more


def keep(block):
    kept.append(block)
    return len(kept)


class Base:
    def method(self, then):
        keep(bytearray(told()))
        return then()

    @classmethod
    def of_class(cls, then):
        return then()

    @staticmethod
    def of_nobody(then):
        return then()

    @property
    def read(self):
        return self.then()

    def __getattr__(self, name):
        if name != "absent":
            raise AttributeError(name)
        return self.then()

    def __getitem__(self, then):
        return then()

    def __call__(self, then):
        return super().__getattribute__("method")(then)

    def __enter__(self):
        keep(bytearray(told()))
        return self

    def __exit__(self, *_):
        keep(bytearray(told()))

    def __lt__(self, other):
        self.then()
        return False

    def __del__(self):
        if hasattr(self, "last"):
            self.last()


class Hashed:
    def __init__(self, then):
        self.then = then

    def __hash__(self):
        self.then()
        return 1


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


def direct(then):
    return then()


def after_a_loop(then):
    total = 0
    for i in range(300):  # so that its instructions are specialised
        total += i
    with contextlib.suppress(KeyError):
        {}[total]
    return (
        total,
        keep(bytearray(told())),
        then(),
    )


@decorated
def through_decorator(then):
    return then()


def generator(then):
    for turn in range(2):
        if turn == 1:
            then()
        yield keep(bytearray(told()))


def through_generator(then):
    return list(generator(then))


def delegating(then):
    yield from generator(then)


def through_delegation(then):
    return [x for x in delegating(then)]


def through_expression(then):
    return sum(1 for _ in [1] if then() or True)


def through_comprehension(then):
    return {i: [then() for _ in [0]] for i in [1]}


def through_lambda(then):
    return (lambda: (lambda: then())())()


def through_sort(then):
    return sorted([1, 2], key=lambda i: (then() if i == 2 else keep(bytearray(told())), 0)[1])


def through_map(then):
    return list(map(lambda _: then(), [1]))


def through_reduce(then):
    return functools.reduce(lambda a, b: then(), [1, 2])


def through_substitution(then):
    return re.sub("b", lambda match: (then(), "")[1], "abc")


def through_partial(then):
    return functools.partial(direct, then)()


def through_class_body(then):
    class Made:
        value = then()
    return Made


def through_exec(then):
    name = {"then": then, "keep": keep, "told": told}
    exec("def made():\n\n  keep(bytearray(told()))\n  return then()\nmade()", name)


def through_eval(then):
    return eval(compile("[\n then()\n]", "<made up>", "eval"))


def through_method(then):
    return Base().method(then)


def through_special_methods(then):
    base = Base()
    base.then = then
    with base:
        base.read
        base.absent
        Base.of_class(lambda: base[lambda: Base.of_nobody(lambda: base(then))])
    return min(base, base)


def through_hash(then):
    return {Hashed(then)}


def through_finalizer(then):
    base = Base()
    base.last = then
    del base


def through_exception(then):
    try:
        raise ValueError(then())
    except ValueError:
        keep(bytearray(told()))
        return None
    finally:
        keep(bytearray(told()))


def through_coroutine(then):
    async def inner():
        keep(bytearray(told()))
        return then()

    async def outer():
        async with made():
            return await inner()

    @contextlib.asynccontextmanager
    async def made():
        keep(bytearray(told()))
        yield

    try:
        outer().send(None)
    except StopIteration as end:
        return end.value


def through_callback(then):
    type_ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    call = type_(lambda x: (then(), 0)[1])
    return call(1)


def with_locals(then):
    known = locals()
    frame = sys._getframe()
    keep(bytearray(told()))
    return known, frame.f_lineno, then()


def naïve_größe(then):
    return then()


def ελληνικά_名前(then):
    keep(bytearray(told()))
    return then()


KINDS = [direct, after_a_loop, through_decorator, through_generator, through_delegation,
         through_expression, through_comprehension, through_lambda, through_sort, through_map,
         through_reduce, through_substitution, through_partial, through_class_body, through_exec,
         through_eval, through_method, through_special_methods, through_hash, through_finalizer,
         through_exception, through_coroutine, through_callback, with_locals, naïve_größe,
         ελληνικά_名前]


def walk(choice, depth):
    if depth == 0:
        return keep(bytearray(told()))
    return choice.choice(KINDS)(lambda: walk(choice, depth - 1))


def recurse(depth):
    if depth == 0:
        return keep(bytearray(told()))
    return recurse(depth - 1)


async def sleeper(choice):
    await asyncio.sleep(0)
    walk(choice, 1)
    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
    keep(bytearray(told()))


async def tasks(choice):
    await asyncio.gather(*(sleeper(choice) for _ in range(3)))


def wait(what):
    if "wait" in sys.argv:
        print(what, flush=True)
        sys.stdin.readline()


def main(count):
    wait("waiting")
    if "LD_PRELOAD" in os.environ:
        ctypes.CDLL(None).mtrace_start()  # not for what the imports allocated
    for kind in KINDS:
        kind(lambda: keep(bytearray(told())))
    seeds = [int(word[5:]) for word in sys.argv if word.startswith("seed=")]
    choice = random.Random(seeds[0] if seeds else 7)
    while len(lines) < count:
        walk(choice, choice.randrange(6))
    asyncio.run(tasks(choice))
    recurse(900)
    threads = [threading.Thread(target=walk, args=(random.Random(i), 4)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if "LD_PRELOAD" in os.environ:
        os.kill(os.getpid(), signal.SIGUSR1)  # a report while all blocks are live
    wait("live")
    print("\n".join(lines))


main(int(sys.argv[1]))
