"""A checkpoint of Sample Factory as a policy: a process in Sample Factory's own Python environment decides.

The messages between the two are described in `serve.py`.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hf_mech.control.errors import ControlError
from hf_mech.control.policies import component_sizes

SERVER = Path(__file__).with_name("serve.py")
_ADVICE = (
    "Set its environment up with python -m hf_mech.control.sample_factory.train, and name that environment's Python."
)


class SampleFactoryPolicy:
    """Asks a checkpoint, in a process that ends with this object.

    The frames that the checkpoint was trained on show health and ammunition: make the environment with `hud=True`.

    Args:
        python: the interpreter of the environment that Sample Factory is installed in.
        train_dir, experiment: where `hf_mech.control.sample_factory.train` put the checkpoint.
        scenario: "my_way_home" or "deadly_corridor".
        greedy: take the most likely action, not a sampled one.

    Raises (by `reset`):
        ControlError: the process does not start, or the checkpoint expects other frames or actions.
    """

    def __init__(
        self, python: str | Path, train_dir: str | Path, experiment: str, scenario: str, greedy: bool = False
    ) -> None:
        self._command = [
            *(str(python), str(SERVER), f"--env=doom_{scenario}", f"--experiment={experiment}"),
            *(f"--train_dir={train_dir}", f"--eval_deterministic={greedy}"),
        ]
        self._server: subprocess.Popen[bytes] | None = None

    def reset(self, environment: gymnasium.Env[Any, Any], generator: np.random.Generator) -> None:
        """Begins an episode, the first time in a new process."""
        if self._server is None:
            self._start(environment)
        self._send(b"R" + int(generator.integers(2**63)).to_bytes(8, "little"))

    def __call__(self, observation: NDArray[Any], info: dict[str, Any]) -> NDArray[np.int64]:
        """The checkpoint's action, [components]."""
        self._send(b"S" + observation.tobytes())
        return np.frombuffer(self._receive(self._components), np.uint8).astype(np.int64)

    def close(self) -> None:
        """Ends the process; more than once does no harm."""
        if self._server is not None:
            self._server = None
            self._end()

    def __enter__(self) -> SampleFactoryPolicy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, environment: gymnasium.Env[Any, Any]) -> None:
        self._log = log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        try:
            server = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        except OSError as error:
            log.close()
            raise ControlError(f"{self._command[0]} does not run: {error}. {_ADVICE}") from error
        self._server = server
        self._end = weakref.finalize(self, _end, server, log)
        assert server.stdout is not None
        if not (line := server.stdout.readline()):
            raise self._failure()
        expected = json.loads(line)
        shape, self._components = (expected["height"], expected["width"], 3), expected["components"]
        space, components = environment.observation_space, len(component_sizes(environment))
        if space.shape != shape or components != self._components:
            self.close()
            raise ControlError(
                f"The checkpoint expects frames {list(shape)} and actions of {self._components} components, the "
                f"environment has {list(space.shape or ())} and {components}; take the scenario and the frame_size "
                "that it was trained with."
            )

    def _send(self, message: bytes) -> None:
        if self._server is None or self._server.stdin is None:
            raise ControlError("The policy is closed or was never reset; call reset() first.")
        try:
            self._server.stdin.write(message)
            self._server.stdin.flush()
        except BrokenPipeError as error:
            raise self._failure() from error

    def _receive(self, count: int) -> bytes:
        assert self._server is not None
        assert self._server.stdout is not None
        reply = self._server.stdout.read(count)
        if len(reply) < count:
            raise self._failure()
        return reply

    def _failure(self) -> ControlError:
        """The error with the last lines that the process wrote; ends the process."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        self.close()
        return ControlError(f"Sample Factory ended: {' / '.join(lines[-3:]) or 'without a word'}. {_ADVICE}")


def _end(server: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    """Kills the process, which has nothing to save."""
    server.kill()
    with contextlib.suppress(BrokenPipeError):  # a message that it did not read
        server.communicate()
    log.close()
