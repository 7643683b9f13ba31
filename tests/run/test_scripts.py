"""A script without a main guard: its classes, lambdas and torch modules reach the workers by value."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

EXAMPLE = """
import penstock
run = penstock.train("CartPole-v1", algo="ppo", steps=20_000, seed=1)
obs = [0.0, 0.0, 0.01, 0.0]
print(run.summary["return_mean"]); action = run.policy(obs)
assert action in (0, 1) and action.shape == (), action
assert run.policy([obs, obs]).shape == (2,)
"""

OWN = """
import gymnasium, numpy as np, torch, penstock

class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        self.place = 0
        return np.zeros(1, np.float32), {}
    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = abs(self.place) >= 5
        return np.full(1, abs(self.place) / 5, np.float32), float(action), done, False, {}

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 8)
    def forward(self, observation):
        return torch.relu(self.layer(observation))

small = dict(steps=600, n_envs=4, n_blocks=2, n_steps=16, batch_size=32, quiet=True)
seen = []
run = penstock.train(Corridor, model=Network, callback=lambda record: seen.append(record["version"]), **small)
assert seen == list(range(1, run.summary["version"] + 1))
assert run.policy(np.zeros(1)).shape == ()
again = penstock.train(lambda: Corridor(), model={"hidden_sizes": (8,)}, **small)
assert again.summary["episodes"] > 0
assert "hidden_sizes = [\\n    8,\\n]" in (again.run_dir / "config.toml").read_text()
try:
    penstock.train("CartPole-v1", preset=str(run.run_dir / "config.toml"), **small)
except penstock.PenstockError as error:
    print("done:", error)
"""


def run_python(arguments: list[str], cwd: Path) -> str:
    result = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_example_runs_as_a_plain_script(tmp_path):
    (tmp_path / "script.py").write_text(EXAMPLE)
    assert float(run_python(["script.py"], tmp_path)) > 10
    runs = list((tmp_path / "runs").iterdir())
    assert len(runs) == 1
    assert json.loads((runs[0] / "summary.json").read_text())["stop_reason"] in ("steps", "return")


def test_the_example_runs_under_python_c(tmp_path):
    assert float(run_python(["-c", EXAMPLE], tmp_path)) > 10


def test_the_example_runs_in_ipython(tmp_path):
    pytest.importorskip("IPython")
    (tmp_path / "cell.ipy").write_text(EXAMPLE)
    assert "Traceback" not in run_python(["-m", "IPython", "--colors=NoColor", "cell.ipy"], tmp_path)


def test_what_a_script_defines_travels_by_value(tmp_path):
    (tmp_path / "script.py").write_text(OWN)
    said = run_python(["script.py"], tmp_path).strip()
    assert said.startswith("done:")  # a network that only a script has is never silently another
    assert "Network" in said
