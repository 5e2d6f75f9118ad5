"""Where there is no GPU, or no CUDA in the build: device arrays are refused in words that help, and nothing
else changes. Runs everywhere: on a machine with a GPU, it is hidden."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import isofold

STAND_IN = """
import numpy as np, isofold
class OnDevice:
    def __dlpack_device__(self):
        return (2, 0)
"""


def _python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STAND_IN) + textwrap.dedent(code)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    return done.stdout


@pytest.mark.parametrize(
    "call",
    [
        "isofold.isotonic_regression(OnDevice())",
        "isofold.isotonic_regression(np.ones(3), weights=OnDevice())",
        "isofold.isotonic_regression(np.ones(3), offsets=OnDevice())",
        "isofold.isotonic_regression(OnDevice(), weights=np.ones(3), axis=7)",
    ],
)
def test_device_arrays_are_refused_with_the_way_out(call: str) -> None:
    message = _python(
        f"""
        try:
            {call}
        except RuntimeError as error:
            print(error)
        """
    )
    assert message.startswith("an array is in the memory of a CUDA device, and ")
    if "this build of isofold has no CUDA" in message:
        assert "pip install . -C cmake.define.ISOFOLD_CUDA=ON" in message
    else:
        assert "this machine has no CUDA that isofold can use" in message
        assert "driver" in message


def test_the_host_needs_no_gpu() -> None:
    assert (
        _python("print(isofold.isotonic_regression([3.0, 1.0, 2.0]).x.tolist())").strip() == "[2.0, 2.0, 2.0]"
    )


def test_arrays_of_two_devices_and_of_unknown_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        shape = (3,)

        def __init__(self, device: int) -> None:
            self._device = device

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, self._device)

    class Array(Bare):
        def __array_namespace__(self) -> object:
            return np

    monkeypatch.setattr("isofold._native.cuda_fault", lambda: "")
    with pytest.raises(ValueError, match="weights is on CUDA device 1, but y is on CUDA device 0"):
        isofold.isotonic_regression(Array(0), weights=Array(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="offsets is on CUDA device 0, but y is on CUDA device 3"):
        isofold.isotonic_regression(Array(3), offsets=Array(0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="weights is a Bare, but y is a Array"):
        isofold.isotonic_regression(Array(0), weights=Bare(0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"y is a Bare on a GPU; .* torch\.from_dlpack"):
        isofold.isotonic_regression(Bare(0))  # type: ignore[arg-type]


def test_a_gradient_on_a_device_does_not_fit_a_fit_on_the_host() -> None:
    class OnDevice:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    result = isofold.isotonic_regression([3.0, 1.0, 2.0])
    with pytest.raises(TypeError, match="grad is on a CUDA device, but the fit is in host memory"):
        isofold.isotonic_gradient(result, OnDevice())  # type: ignore[arg-type]


def test_arrays_that_say_they_are_on_the_host_are_read_there() -> None:
    class OnHost:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __array__(self, dtype: object = None, copy: object = None) -> object:
            return np.array([3.0, 1.0, 2.0])

    class Spread(OnHost):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise BufferError("over several devices")

    for given in (OnHost(), Spread()):
        assert isofold.isotonic_regression(given).x.tolist() == [2, 2, 2]  # type: ignore[arg-type]
