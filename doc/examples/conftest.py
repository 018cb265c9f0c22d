"""Makes a pytest test fail that leaks native memory: what C extensions and libraries allocate.

Copy this file beside the tests, and run pytest under libmtrace.so. See doc/ci.md.
"""
import ctypes
import gc
import os

import pytest

WARM_UP = 3  # runs in which caches and free lists fill up
REPEAT = 10  # runs after them, in which nothing may grow
LIMIT = int(os.environ.get("LEAK_LIMIT", 1))  # bytes a run from which a test fails

library = ctypes.CDLL(None)
TRACED = hasattr(library, "mtrace_save")
if TRACED:
    library.mtrace_compare.restype = ctypes.c_int64
    library.mtrace_check.restype = ctypes.c_int64


def pytest_configure(config):
    config.addinivalue_line("markers", "keeps_memory: may leave native memory behind")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not TRACED or pyfuncitem.get_closest_marker("keeps_memory"):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    for _ in range(WARM_UP):
        pyfuncitem.obj(**arguments)
    gc.collect()
    library.mtrace_save(b"warm-up")
    for _ in range(REPEAT):
        pyfuncitem.obj(**arguments)
    gc.collect()
    growth = library.mtrace_compare(b"warm-up")
    if growth >= REPEAT * LIMIT:
        library.mtrace_check(b"warm-up")  # prints the stacks that grew
        pytest.fail(f"{REPEAT} runs leave {growth} bytes of native memory", pytrace=False)
    return True
