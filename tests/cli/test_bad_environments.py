"""What cannot be trained on is one line that says what to do, and exit code 2: every space, mask and extra that is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bad_environments import ACTED, MASKED, OBSERVED

import penstock
from penstock.cli.main import main

SAYS = {
    "observed=text": "observation space Text(",
    "observed=graph": "observation space Graph(",
    "observed=sequence": "observation space Sequence(",
    "observed=one_of": "observation space OneOf(",
    "observed=nested": "observation space Dict(",
    "observed=nested_text": "leave the text out, with --wrap penstock.envs.wrappers:without_text",
    "observed=complex": "observation space Box(",
    "observed=object": "observation space Box(",
    "observed=empty": "observation space Box(",
    "observed=none": "observation space None",
    "acted=unbounded": "unbounded action space Box(-inf, inf, (2,), float32)",
    "acted=half_bounded": "give it finite bounds",
    "acted=whole_numbers": "action space Box(0, 9, (2,), int64)",
    "acted=text": "action space Text(",
    "acted=graph": "action space Graph(",
    "acted=sequence": "action space Sequence(",
    "acted=nested_unbounded": "unbounded action space Dict(",
    "acted=nested_whole_numbers": "action space Dict('a': Box(0, 9, (2,), int64))",
    "acted=nested_text": "action space Tuple(",
    "masked=long": "action mask of 4 flags, expected 3",
    "masked=short": "action mask of 3 flags, expected 5",
    "masked=nothing": "the action mask allows no action",
    "masked=nothing_of_one": "the action mask allows no action",
    "masked=on_box": "masks actions that are not Discrete or MultiDiscrete; leave out the mask",
    "masked=on_dict": "masks actions that are not Discrete or MultiDiscrete; leave out the mask",
}
EXTRAS = [
    ("ALE/Pong-v5", "ale_py", "atari"),
    ("HalfCheetah-v5", "mujoco", "mujoco"),
    ("LunarLander-v3", "Box2D", "box2d"),
    ("MiniGrid-Empty-5x5-v0", "minigrid", "minigrid"),
    ("BabyAI-GoToRedBall-v0", "minigrid", "minigrid"),
    ("VizdoomBasic-v1", "vizdoom", "vizdoom"),
    ("envpool/Pong-v5", "envpool", "envpool"),
]
WITHOUT = "import sys; sys.modules[sys.argv[1]] = None; from penstock.cli.main import main; sys.exit(main(sys.argv[2:]))"
"""How Python marks a module as absent; a process of its own, in which nothing has been loaded yet."""


def test_every_bad_environment_has_its_line():
    named = {
        f"{kind}={name}" for kind, names in (("observed", OBSERVED), ("acted", ACTED), ("masked", MASKED)) for name in names
    }
    assert named == set(SAYS)


@pytest.mark.parametrize("argument", SAYS)
@pytest.mark.parametrize("command", ["train", "doctor"])
def test_is_refused_in_one_line(
    command: str,
    argument: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    monkeypatch.chdir(tmp_path)
    name = "bad_environments:Bad"
    words = ["train", name, "--workers", "0"] if command == "train" else ["doctor", "--env", name]
    assert main([*words, "--env-arg", argument]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = [line for line in printed.err.splitlines() if not line.startswith((" ", "Traceback"))][-1:]
    assert line.startswith(f"penstock: environment '{name}' ")
    assert SAYS[argument] in line
    assert "Traceback" not in printed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "module", "extra"), EXTRAS)
def test_a_missing_extra_is_named(name: str, module: str, extra: str, tmp_path: Path):
    words = [sys.executable, "-c", WITHOUT, module, "train", name, "--workers", "0"]
    here = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=here)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr == f"penstock: environment '{name}' needs the extra '{extra}': pip install 'penstock[{extra}]'\n"
    assert list(tmp_path.iterdir()) == []
