"""The command line of bench: help, refusals, output for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from penstock.bench import command
from penstock.bench.throughput import Measured
from penstock.cli.main import main
from penstock.core.errors import Refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("limit", "unknown bench 'limit'; did you mean limits?"),
        ("limits --job cartpol", "unknown job 'cartpol'; did you mean cartpole?"),
        ("limits --jsn", "unknown option of penstock bench limits '--jsn'; did you mean --json"),
        ("limits now", "penstock bench limits has no place for 'now'"),
        ("limits --seconds 0", "--seconds is a number, above 0, not '0'"),
        ("limits --seconds nan", "--seconds is a number, above 0, not 'nan'"),
        ("throughput --pairs 1.5", "--pairs is a whole number, 1 or more, not '1.5'"),
        ("throughput --workers -1", "--workers is a whole number, 0 or more, not '-1'"),
        ("throughput --schedule overlapp", "unknown schedule 'overlapp'; did you mean overlap?"),
        ("throughput --peer sb4", "unknown peer 'sb4'; did you mean sb3?"),
        ("throughput --peer-threads 2", "add --peer sb3"),
        ("overlap --variance 0", "--variance is a number, above 0, not '0'"),
        ("overlap --share -1", "--share is a number, 0 or more, not '-1'"),
        ("overlap --layout 4x4", "unknown layout '4x4'; known: 16x1, 1x16"),
        ("overlap --learner pppo", "unknown learner 'pppo'; did you mean ppo?"),
        ("overlap --schedule overlapp", "unknown schedule 'overlapp'; did you mean overlap?"),
        ("overlap --rounds 0", "--rounds is a whole number, 1 or more, not '0'"),
        ("overlap --show nowhere.json", "--show nowhere.json: No such file or directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["bench", *arguments.split()]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_help(capsys: pytest.CaptureFixture[str]):
    assert main(["bench"]) == main(["bench", "--help"]) == 0
    assert "throughput" in capsys.readouterr().out
    for name in ("limits", "throughput", "overlap"):
        with pytest.raises(SystemExit, match="0"):
            command.main([name, "--help"])
        assert f"penstock bench {name}" in capsys.readouterr().out


def test_reading_arguments_loads_no_torch():
    code = "import sys; from penstock.bench.command import main; main(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_a_missing_extra_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("penstock.bench.jobs.importlib.util.find_spec", lambda _: None)
    with pytest.raises(Refused, match=r"pip install 'penstock\[mujoco\]'"):
        command.main(["limits", "--job", "halfcheetah"])


def test_json_is_one_line_and_the_table_goes_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    ran: list[tuple[str, int]] = []

    def run(self: Any, seed: int) -> Measured:
        ran.append((self.name, self.steps))
        return Measured(100.0 if self.ours else 40.0, 1.0, {})

    monkeypatch.setattr("penstock.bench.contenders.Penstock.run", run)
    monkeypatch.setattr("penstock.bench.contenders.StableBaselines3.run", run)
    monkeypatch.setattr("penstock.bench.contenders.find_peer_python", lambda given: given)
    monkeypatch.setattr("penstock.bench.command._limit_of", lambda job: 200.0)
    arguments = ["throughput", "--peer", "sb3", "--peer-python", "python", "--schedule", "async", "--pairs", "2"]
    assert command.main([*arguments, "--steps", "1e5", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert ran == [("penstock async", 100_000), ("sb3, 1 thread", 100_000), ("sb3, 2 threads", 100_000)] * 2
    assert found["ratios"]["penstock async"]["mean"] == pytest.approx(2.5)
    assert found["results"][0]["fraction_of_limit"] == pytest.approx(0.5)
    assert {"cpu", "cores", "torch", "commit"} <= set(found["machine"])
    assert "2.50x" in said.err
