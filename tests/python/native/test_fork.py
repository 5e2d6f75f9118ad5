"""No thread outlives a call, so a forked child works as its parent did."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading

import numpy as np
import pytest

import isofold

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

Y = np.random.default_rng(2).standard_normal(200_000)


def _digest(threads: int) -> str:
    result = isofold.isotonic_regression(Y, threads=threads)
    grad, _ = isofold.isotonic_gradient(result, Y)
    return hashlib.sha256(result.x.tobytes() + grad.tobytes()).hexdigest()


def test_forked_workers_give_the_parents_bits() -> None:
    expected = _digest(2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_digest, [1, 2, 7, 2], chunksize=1) == [expected] * 4
    assert _digest(2) == expected


def _children_agree(expected: str, count: int) -> bool:
    for _ in range(count):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if _digest(2) == expected else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            return False
    return True


def test_fork_while_another_thread_is_inside_a_call() -> None:
    expected = _digest(2)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            _digest(2)

    worker = threading.Thread(target=keep_busy)
    worker.start()
    try:
        assert _children_agree(expected, 5)
    finally:
        stop.set()
        worker.join()
    assert not [thread for thread in threading.enumerate() if thread is worker]


def test_no_thread_is_left_behind() -> None:
    # In a child: threads of other libraries, which come and go, are not copied into it.
    child = os.fork()
    if child == 0:
        left = 0
        try:
            _digest(7)
            left = len(os.listdir("/proc/self/task"))
        finally:
            os._exit(left)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
