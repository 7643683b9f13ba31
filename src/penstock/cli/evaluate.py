"""`penstock eval`. Reads flags, has a policy played, prints the interval. Knows nothing of playing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.cli.apart import set_apart
from penstock.cli.commands import Eval
from penstock.cli.summary import as_json
from penstock.config.values import checked
from penstock.core.errors import Refused
from penstock.core.loading import load_object
from penstock.metrics.wording import short_number

DEFAULT_EPISODES = 20


def carry_out(command: Eval) -> int:
    """Play, and print mean, standard deviation and the 95 % interval of the mean."""
    if command.run is None:
        raise Refused("penstock eval needs the directory of a run, such as runs/pong")
    episodes = DEFAULT_EPISODES if command.episodes is None else _whole("--episodes", command.episodes, least=1)
    seed = 0 if command.seed is None else _whole("--seed", command.seed, least=0)
    version = None if command.checkpoint is None else _whole("--checkpoint", command.checkpoint, least=0)
    evaluate = load_object("penstock.workers.evaluation:evaluate")
    with set_apart(command.json):
        returns = evaluate(
            Path(command.run),
            episodes=episodes,
            seed=seed,
            deterministic=not command.stochastic,
            version=version,
            trust=command.trust,
            render=command.render,
        )
    result = {"run_dir": command.run, "deterministic": not command.stochastic, "seed": seed, **statistics(returns)}
    print(as_json(result) if command.json else as_text(result))
    return 0


def statistics(returns: Sequence[float]) -> dict[str, Any]:
    """Mean, standard deviation and the 95 % confidence interval of the mean (Student's t)."""
    count = len(returns)
    mean = math.fsum(returns) / count
    if count == 1:
        return {"episodes": 1, "return_mean": mean, "return_std": None, "return_low": None, "return_high": None}
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in returns) / (count - 1))
    half = t_quantile(count - 1) * std / math.sqrt(count)
    return {
        "episodes": count,
        "return_mean": mean,
        "return_std": std,
        "return_low": mean - half,
        "return_high": mean + half,
    }


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: exact for one and two degrees, else Cornish and Fisher's series in 1/freedom."""
    if freedom == 1:
        return 12.7062
    if freedom == 2:
        return 4.3027
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


def as_text(result: dict[str, Any]) -> str:
    """One line for people."""
    line = f"return {short_number(result['return_mean'])}"
    if result["return_std"] is not None:
        interval = f"{short_number(result['return_low'])} to {short_number(result['return_high'])}"
        line += f" ± {short_number(result['return_std'])}, 95 % interval of the mean {interval}"
    return f"{line}, {result['episodes']} episodes"


def _whole(name: str, text: str, *, least: int) -> int:
    number: int = checked(name, text, int, is_text=True)
    if number < least:
        raise Refused(f"{name} {number} is too small; {least} is the least")
    return number
