"""With --json the summary is the last line of standard output, and the only one, whatever environments print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

CHATTY = """
import atexit, ctypes, os
import gymnasium

print("imported", end="")
atexit.register(print, "at exit", end="", flush=True)

class Chatty(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.steps = 0
        os.write(1, b"raw words")
        return self.observation_space.low, {}

    def step(self, action):
        self.steps += 1
        print("hello", end="")
        ctypes.CDLL(None).printf(b"from C")  # waits in a buffer
        return self.observation_space.low, 1.0, self.steps == 10, False, {}
"""
TINY = ["--preset", "none", "--steps", "100", "--set", "n_envs=2", "--set", "n_blocks=1", "--set", "n_steps=32"]


def penstock(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_environments_print_does_not_spoil_it(tmp_path, workers):
    (tmp_path / "chatty.py").write_text(CHATTY)
    arguments = [*TINY, "--set", "batch_size=64", "--workers", workers, "--out", "run", "--quiet", "--json"]
    trained = penstock("train", "chatty:Chatty", *arguments, cwd=tmp_path)
    played = penstock("eval", "run", "--episodes", "2", "--trust", "chatty", "--json", cwd=tmp_path)
    for done in (trained, played):
        assert done.returncode == 0, done.stderr
        (line,) = done.stdout.splitlines()
        assert json.loads(line)["return_mean"] == 10
        for words in ("imported", "hello", "raw words", "from C", "at exit"):
            assert words in done.stderr
    assert json.loads(trained.stdout) == json.loads((tmp_path / "run" / "summary.json").read_text())
