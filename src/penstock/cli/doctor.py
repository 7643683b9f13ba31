"""`penstock doctor`: is this machine ready? Prints what `machine.py` found. Knows how a table looks, not what is checked."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.cli.commands import Doctor
from penstock.cli.machine import Check, every_check


def carry_out(command: Doctor) -> int:
    """Print the table; 1 if something that a run needs is missing."""
    del command  # it has no flags
    checks = every_check()
    print("\n".join(table(checks)))
    return 1 if any(check.status == "fail" for check in checks) else 0


def table(checks: Sequence[Check]) -> list[str]:
    """A line per check, its advice beside it, and the verdict."""
    lines = [
        f"{check.status:<5} {check.what:<16} {check.found}" + (f"; {check.advice}" if check.advice else "") for check in checks
    ]
    failed = [check.what for check in checks if check.status == "fail"]
    verdict = f"Not ready: see {', '.join(failed)} above." if failed else "Ready: penstock train CartPole-v1"
    return [*lines, "", verdict]
