"""What the documentation says is so: links lead somewhere, commands would be accepted, generated pages are fresh."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import generate_metrics
import generate_settings
import numpy as np
import pytest

from penstock.algorithms.settings import CATALOGUE
from penstock.bench import command as bench
from penstock.bench.arguments import OneLine
from penstock.cli import commands, study
from penstock.cli.parser import parse
from penstock.cli.train import built_from

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
DATACLASS_OF = {
    "train": commands.Train,
    "eval": commands.Eval,
    "presets": commands.Presets,
    "doctor": commands.Doctor,
    "study": commands.Study,
}
SHOWS_REFUSALS = "failures.md"
"""Its commands are there to be refused: they must be well formed, no more."""


# ---------------------------------------------------------------- reading pages


def fenced(page: Path) -> Iterator[tuple[str, str]]:
    """(language, content) of each fenced block."""
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        yield found.group(1), found.group(2)


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of every `penstock ...` command of a shell text; a loop's variable stands for each of its values."""
    values = {name: words.split() for name, words in re.findall(r"for (\w+) in ([^;\n]+)", text)}
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.wordchars += "$:,%+@"
        for words in simple_commands(list(lexer)):
            if words[:1] == ["penstock"]:
                yield from expanded(words[1:], values)


def simple_commands(words: Sequence[str]) -> list[list[str]]:
    """A line cut at its shell operators."""
    pieces: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("();<>|&"):
            pieces.append([])
        elif word != "do":
            pieces[-1].append(word)
    return pieces


def expanded(words: list[str], values: dict[str, list[str]]) -> Iterator[list[str]]:
    for name, choices in values.items():
        if any(f"${name}" in word for word in words):
            for choice in choices:
                yield [word.replace(f"${name}", choice) for word in words]
            return
    yield words


def every_command() -> list[tuple[str, tuple[str, ...]]]:
    return [
        (page.name, tuple(words))
        for page in PAGES
        for language, text in fenced(page)
        if language in ("", "sh", "bash", "console")
        for words in commands_in(text)
    ]


def slug(heading: str) -> str:
    """The anchor of a heading, as forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


# ---------------------------------------------------------------- links


def test_there_are_pages_and_they_have_commands():
    assert {"README.md", "ARCHITECTURE.md", "settings.md", "determinism.md"} <= {page.name for page in PAGES}
    assert len(every_command()) > 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue  # elsewhere on the net
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        headings = (
            re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE) if path.suffix == ".md" and path.is_file() else []
        )
        if not path.exists() or (anchor and anchor not in map(slug, headings)):
            broken.append(target)
    assert not broken


# ---------------------------------------------------------------- commands


class Parsed(Exception):
    """The arguments were accepted; nothing more shall happen."""


def accept_bench(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    parse_only = OneLine.parse

    def stop(parser: Any, arguments: Sequence[str]) -> None:
        parse_only(parser, arguments)
        raise Parsed

    monkeypatch.setattr(OneLine, "parse", stop)
    with pytest.raises(Parsed):
        bench.main(words)


@pytest.mark.parametrize(("page", "words"), every_command(), ids=lambda part: part if isinstance(part, str) else " ".join(part))
def test_commands_would_be_accepted(page: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    name, *arguments = words
    if name == "bench":
        accept_bench(arguments, monkeypatch)
        return
    command = parse(DATACLASS_OF[name], name, arguments)
    if isinstance(command, commands.Study):
        assert command.study in study.STUDIES
        assert list(study.plan_of(command).cells())
    if isinstance(command, commands.Train) and command.resume is None and page != SHOWS_REFUSALS:
        assert built_from(command).job.env.id


def test_commands_are_found_in_shell_texts():
    text = "for w in 0 1; do\n  penstock train X --workers $w --out runs/a-$w\ndone\nA=1; penstock presets | head  # all\n"
    assert list(commands_in(text)) == [
        ["train", "X", "--workers", "0", "--out", "runs/a-0"],
        ["train", "X", "--workers", "1", "--out", "runs/a-1"],
        ["presets"],
    ]


# ---------------------------------------------------------------- the README, examples in Python


def test_readme_opens_with_the_two_lines():
    title, *rest = (ROOT / "README.md").read_text("utf-8").split("\n\n")
    assert title.startswith("# ")
    assert [line.split("#")[0].strip() for line in rest[0].splitlines()] == ["```", "make run", "make test", "```"]


def test_readme_has_the_example_as_it_was_promised():
    example = """\
import penstock
run = penstock.train("CartPole-v1", algo="ppo", steps=100_000, seed=1)
print(run.summary["return_mean"]); action = run.policy(obs)
"""
    assert ("python", example) in list(fenced(ROOT / "README.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_are_python(page: Path):
    for language, text in fenced(page):
        if language == "python":
            compile(text, page.name, "exec")


def test_the_algorithm_of_ones_own_trains():
    from penstock.algorithms.batch import Batch
    from penstock.algorithms.settings import PPOSettings
    from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
    from penstock.models.policy import build_policy
    from penstock.models.settings import ModelSettings

    (source,) = (text for _, text in fenced(ROOT / "docs/algorithms.md") if "class PolicyGradient" in text)
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    spec = EnvironmentSpec("own", BoxSpec((3,), "float32", (-1.0,) * 3, (1.0,) * 3), DiscreteSpec(2))
    own = namespace["PolicyGradient"](build_policy(spec, ModelSettings(), 1), PPOSettings(), 1)
    before, rows = own.flat.values.clone(), (2, 5, 4)
    generator, no = np.random.default_rng(1), np.zeros(rows, np.bool_)
    batch = Batch(
        version=0,
        observation=generator.random((2, 6, 4, 3), np.float32),
        action=generator.integers(0, 2, rows),
        log_prob=np.full(rows, np.log(0.5), np.float32),
        reward=generator.random(rows, np.float32),
        value=np.zeros((2, 6, 4), np.float32),
        terminated=no,
        truncated=no,
        valid=~no,
    )
    reported = own.update(batch, 0.0)
    assert (reported["updates"], reported["samples"]) == (1, 40)
    assert (own.flat.values != before).any()
    own.restore(before, own.state())
    assert (own.flat.values == before).all()


# ---------------------------------------------------------------- pages that follow the source


def test_generated_pages_are_fresh():
    for module, fresh in (
        (generate_settings, generate_settings.page()),
        (generate_metrics, generate_metrics.refreshed(generate_metrics.PAGE.read_text("utf-8"))),
    ):
        assert module.PAGE.read_text("utf-8") == fresh, f"run: python tests/docs/{module.__name__}.py"


def test_every_setting_has_a_meaning():
    for algo in CATALOGUE:
        for name, settings in generate_settings.sections(algo).items():
            without = generate_settings.field_types(algo, name).keys() - generate_settings.meanings(settings).keys()
            assert not without, f"a line of text belongs under each of {sorted(without)} in section {name}"


def explained(name: str) -> bool:
    return f"`{name}`" in (ROOT / "docs" / "metrics.md").read_text("utf-8")


def test_summary_keys_are_explained():
    tree = ast.parse((ROOT / "src/penstock/run/summary.py").read_text("utf-8"))
    (keys,) = (
        [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and ast.unparse(node.targets[0]) == "summary"
    )
    assert "digest" in keys
    assert [key for key in keys if not explained(str(key))] == []


def test_journal_events_are_explained():
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src/penstock/run").glob("*.py"))
    events = set(re.findall(r"(?:\.event|journal\.write|\._write)\(\s*\"(\w+)\"", source))
    assert {"run_started", "trained", "fault"} <= events
    assert [event for event in sorted(events) if not explained(event)] == []


# ---------------------------------------------------------------- nothing of this machine

HERE = (
    r"(?<![\w.~/-])/(?:home|Users)/\w",
    r"(?<![\w.~/-])/(?:root|work)/",
    rf"(?<![\w.~/-]){re.escape(str(ROOT))}(?![\w-])",
)
INDEX = r"py" r"pi\.org|python" r"hosted\.org|download\.py" r"torch\.org|index" r"-url"
"""In pieces, so that this file does not name what it looks for."""
INSTALLS = ("Makefile", "pyproject.toml", "constraints.txt", "run")


def tracked_files() -> list[Path]:
    """What belongs to the project, as git knows; without git, all that lies where it belongs."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    places = [path for name in ("src", "tests", "docs", ".ci") for path in (ROOT / name).rglob("*")]
    return [path for path in [*ROOT.iterdir(), *places] if path.is_file() and not {"__pycache__"} & set(path.parts)]


def test_no_file_names_this_machine_or_a_package_index():
    found = []
    for path in tracked_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # not text
        patterns = [*HERE, INDEX, *(["https?://"] if path.name in INSTALLS else [])]
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for pattern in patterns if re.search(pattern, line)]
    assert not found
