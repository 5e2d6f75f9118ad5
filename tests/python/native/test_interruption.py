"""Long calls let signals through on the main thread, and other threads run meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from long_call import long_row, run

DELAY = 0.3  # seconds until the signal; the call takes several times that


class Alarm(Exception):
    pass


@pytest.fixture
def on_alarm() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Sets what SIGALRM does."""
    before = signal.getsignal(signal.SIGALRM)

    def handle(action: Callable[[], None]) -> None:
        signal.signal(signal.SIGALRM, lambda number, frame: action())

    yield handle
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C raises, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _raise_alarm() -> None:
    raise Alarm


def test_keyboard_interrupt_ends_a_long_call(interrupts: None) -> None:
    row, took = long_row()
    timer = threading.Timer(DELAY, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        run(row)
    assert time.perf_counter() - start < DELAY + took / 2
    timer.join()


def test_what_a_handler_raises_comes_out(on_alarm: Callable[[Callable[[], None]], None]) -> None:
    row, took = long_row()
    on_alarm(_raise_alarm)
    signal.setitimer(signal.ITIMER_REAL, DELAY)
    start = time.perf_counter()
    with pytest.raises(Alarm):
        run(row)
    assert time.perf_counter() - start < DELAY + took / 2


def test_a_handler_that_raises_nothing_runs_during_the_call(
    on_alarm: Callable[[Callable[[], None]], None],
) -> None:
    row, _ = long_row()
    rung: list[float] = []
    on_alarm(lambda: rung.append(time.perf_counter()))
    signal.setitimer(signal.ITIMER_REAL, DELAY)
    start = time.perf_counter()
    run(row)
    end = time.perf_counter()
    assert len(rung) == 1
    assert rung[0] < start + (end - start) * 0.8


def test_another_thread_is_left_alone_and_does_not_hold_the_interpreter(
    on_alarm: Callable[[Callable[[], None]], None],
) -> None:
    row, _ = long_row()
    on_alarm(_raise_alarm)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            run(row)
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    naps: list[None] = []

    def watch() -> None:
        signal.setitimer(signal.ITIMER_REAL, DELAY)
        while worker.is_alive():
            time.sleep(0.001)
            naps.append(None)

    with pytest.raises(Alarm):
        watch()
    assert worker.is_alive()
    worker.join()
    assert not failures
    assert len(naps) > 1000 * DELAY / 10
