"""The entry. Picks the command; turns errors into one line and an exit code. Knows no command from inside."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from penstock.cli.parser import parse
from penstock.core.errors import PenstockError, Refused, UnknownName
from penstock.core.loading import load_object

_COMMANDS = {
    "train": ("Train", "train", "train a policy"),
    "eval": ("Eval", "evaluate", "play a trained policy and report its return"),
    "presets": ("Presets", "presets", "what is shipped, with reference scores"),
    "doctor": ("Doctor", "doctor", "is this machine ready?"),
    "study": ("Study", "study", "many runs, a table and a figure of them (staleness)"),
}
"""Command to its dataclass, the module that carries it out, and what it is for."""

_BENCH = "this machine's limits, and how close we are (limits, throughput)"

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code. What is no error of ours keeps its traceback."""
    try:
        return _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except PenstockError as error:
        _report(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as `| head` does; Python would complain again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:  # a full disk, a name too long, too few descriptors: the machine's answer, not a fault of ours
        where = f" ({error.filename})" if error.filename else ""
        print(f"penstock: {type(error).__name__}: {error.strerror or error}{where}; see penstock doctor", file=sys.stderr)
        return 1


def _refuse_what_is_no_text(arguments: Sequence[str]) -> None:
    """Other bytes than UTF-8 come as lone surrogates, which no record and no settings file can hold."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            shown = os.fsencode(argument).decode(errors="backslashreplace")
            raise Refused(f"'{shown}' is no text in UTF-8; rename it") from error


def _dispatch(arguments: list[str]) -> int:
    _refuse_what_is_no_text(arguments)
    name, *rest = arguments or ["--help"]
    if name == "help" and rest:
        name, rest = rest[0], ["--help"]  # penstock help train
    if name in ("--help", "-h", "help"):
        print(_help())
        return 0
    if name == "--version":
        from importlib.metadata import version

        print(f"penstock {version('penstock')}")
        return 0
    if name == "bench":
        bench: Callable[[Sequence[str]], int] = load_object("penstock.bench.command:main")
        return bench(rest)
    if name not in _COMMANDS:
        if name.startswith("-"):
            raise Refused(f"penstock starts with a command, not '{name}' (see penstock --help)")
        raise UnknownName("command", name, [*_COMMANDS, "bench"])
    return _carry_out(name, rest)


def _carry_out(name: str, arguments: Sequence[str]) -> int:
    dataclass_name, module, _ = _COMMANDS[name]
    command = parse(load_object(f"penstock.cli.commands:{dataclass_name}"), name, arguments)
    carry_out: Callable[[object], int] = load_object(f"penstock.cli.{module}:carry_out")
    return carry_out(command)


def _help() -> str:
    lines = [f"  {name:<9} {about}" for name, (_, _, about) in _COMMANDS.items()]
    return "\n".join(
        [
            "usage: penstock COMMAND ...",
            "",
            "High-throughput deep-RL training under one law of staleness.",
            "",
            *lines,
            f"  {'bench':<9} {_BENCH}",
            "",
            "  penstock train CartPole-v1      the first thing to try",
            "  penstock COMMAND --help         all about a command",
            "  penstock --version",
        ]
    )


def _report(error: PenstockError) -> None:
    """What a log wants (a worker's traceback, where a run failed), then the one line that says what to do."""
    if error.details and not isinstance(error, Refused):
        print(error.details.rstrip(), file=sys.stderr)
    print("penstock: " + " ".join(str(error).split()), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
