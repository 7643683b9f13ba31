"""What doctor finds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest

from penstock.cli import doctor, machine
from penstock.cli.machine import Check
from penstock.cli.main import main


def test_this_machine_is_ready(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "Ready: penstock train CartPole-v1"
    assert [line.split()[1] for line in lines[:2]] == ["python", "torch"]


def test_a_failure_is_named_and_is_exit_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(doctor, "every_check", lambda: [Check("torch", "fail", "not installed", "pip install torch")])
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "fail  torch            not installed; pip install torch",
        "",
        "Not ready: see torch above.",
    ]


def test_a_missing_extra_says_what_to_install():
    check = machine.extra("atari", ("no_such_module",))
    assert (check.status, check.advice) == ("-", "pip install 'penstock[atari]'")
    assert machine.extra("x", ("json",)).status == "ok"


def test_a_torch_that_does_not_start_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "_LOOK_AT_TORCH", "raise ImportError('libfoo.so is missing')")
    check = machine.torch()
    assert check.status == "fail"
    assert "libfoo.so is missing" in check.found


def test_an_old_torch_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "_LOOK_AT_TORCH", "print('[\"2.5.1+cpu\", 2, false]')")
    assert machine.torch().status == "fail"
    monkeypatch.setattr(machine, "_LOOK_AT_TORCH", "print('[\"2.10.0+cu126\", 2, true]')")
    assert machine.torch().status == "ok"


def test_no_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert machine.torch().advice == "pip install 'torch>=2.6'"


@pytest.mark.parametrize(("text", "quota"), [("150000 100000", 1.5), ("max 100000", None)])
def test_cpu_quota_of_a_unified_cgroup(tmp_path: Path, text: str, quota: float | None):
    (tmp_path / "cpu.max").write_text(text)
    assert machine.cpu_quota(tmp_path) == quota


@pytest.mark.parametrize(("text", "quota"), [("50000", 0.5), ("-1", None)])
def test_cpu_quota_of_an_older_cgroup(tmp_path: Path, text: str, quota: float | None):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text(text)
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    assert machine.cpu_quota(tmp_path) == quota
    assert machine.cpu_quota(tmp_path / "nowhere") is None


def test_one_core_is_a_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "cpu_quota", lambda: 1.5)
    assert machine.processors().status == "warn"


def test_bfloat16_of_a_processor(tmp_path: Path):
    (tmp_path / "with").write_text("flags : fpu avx2 avx512_bf16 sse\n")
    (tmp_path / "without").write_text("flags : fpu avx2 sse\n")
    assert machine.bfloat16(tmp_path / "with").found == "avx512_bf16"
    assert machine.bfloat16(tmp_path / "without").status == "-"
    assert machine.bfloat16(tmp_path / "nowhere").status == "-"


def test_little_memory_and_few_descriptors_are_warnings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 100 << 20)
    assert machine.memory().status == "warn"
    monkeypatch.setattr(
        machine, "resource", types.SimpleNamespace(RLIMIT_NOFILE=0, RLIM_INFINITY=-1, getrlimit=lambda _: (256, -1))
    )
    assert machine.descriptors() == Check(
        "descriptors", "warn", "256 allowed (at most unlimited)", "ulimit -n 1024 before many workers or environments"
    )


def test_does_not_load_torch_itself():
    code = "import sys; from penstock.cli.machine import every_check; every_check(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
