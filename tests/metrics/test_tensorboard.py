"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from penstock.metrics.tensorboard import EventFile, _masked_checksum, _varint


class HandClock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


def curves(directory: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(directory))
    events.Reload()
    return {tag: [(point.step, point.value) for point in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def record(steps: int, **more: Any) -> dict[str, Any]:
    return {"env_steps": steps, "return_mean": float(steps), **more}


def test_tensorboard_reads_what_we_write(tmp_path: Path):
    sink = EventFile(tmp_path / "events")
    sink.write(record(123_456, entropy=0.25, sampler_busy=[0.5, 1.0], digest="abc", value_loss=None, mine=3))
    sink.close()
    found = curves(tmp_path / "events")
    assert found["rollout/ep_rew_mean"] == [(123_456, 123_456.0)]
    assert found["losses/entropy"] == [(123_456, 0.25)]
    assert found["penstock/sampler_busy"] == [(123_456, 0.75)]
    assert found["custom/mine"] == [(123_456, 3.0)]
    assert "train/value_loss" not in found
    assert not any("digest" in tag for tag in found)


def test_at_most_a_point_a_second_and_the_last(tmp_path: Path):
    clock = HandClock()
    sink = EventFile(tmp_path, every_s=1.0, clock=clock)
    for steps in range(1, 27):
        sink.write(record(steps))
        clock.time += 0.125
    sink.close()
    assert [step for step, _ in curves(tmp_path)["rollout/ep_rew_mean"]] == [1, 9, 17, 25, 26]


def test_what_was_passed_over_does_not_come_back(tmp_path: Path):
    clock = HandClock()
    sink = EventFile(tmp_path, every_s=1.0, clock=clock)
    for steps in (1, 2, 3):  # at 0, 0.5 and 1 s
        sink.write(record(steps))
        clock.time += 0.5
    sink.close()
    assert [step for step, _ in curves(tmp_path)["rollout/ep_rew_mean"]] == [1, 3]


def test_the_last_is_not_written_twice(tmp_path: Path):
    sink = EventFile(tmp_path)
    sink.write(record(1))
    sink.close()
    assert len(curves(tmp_path)["rollout/ep_rew_mean"]) == 1


def test_numbers_that_do_not_fit_are_infinite(tmp_path: Path):
    sink = EventFile(tmp_path)
    sink.write(record(1, value_loss=1e300))
    sink.close()
    assert curves(tmp_path)["train/value_loss"] == [(1, float("inf"))]


def test_checksum_of_a_known_text():
    plain = 0xE3069283  # CRC-32C of "123456789", as RFC 3720 has it
    masked = ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert _masked_checksum(b"123456789") == struct.pack("<I", masked)


def test_varint_by_hand():
    assert _varint(1) == b"\x01"
    assert _varint(300) == b"\xac\x02"  # 300 = 2 * 128 + 44; 44 with the eighth bit, then 2
