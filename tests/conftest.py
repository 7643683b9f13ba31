"""What tests of several rooms share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from penstock.api import request_of
from penstock.config.building import assignments_of, build
from penstock.run.training import Outcome, train
from penstock.workers.forkserver import ForkServer

hypothesis.settings.register_profile("shared machine", deadline=None)
hypothesis.settings.load_profile("shared machine")  # how long an example takes says more of the neighbours than of the code

Train = Callable[..., Outcome]


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """One server with torch loaded for all tests of this process: starting one costs over a second."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def run_training(fork_server: ForkServer, tmp_path: Path) -> Train:
    """Trains with settings by leaf name, in real processes (or inline with workers=0)."""
    count = 0

    def run(env: Any, *, algo: str | None = None, callback: Any = None, model: Any = None, **settings: Any) -> Outcome:
        nonlocal count
        count += 1
        env_id = env if isinstance(env, str) else "script:Environment"
        built = build(env_id, algo=algo, preset=settings.pop("preset", None), assignments=assignments_of(settings))
        request = request_of(
            built,
            out=tmp_path / f"run{count}",
            environment=None if isinstance(env, str) else env,
            model=model,
            callback=callback,
            quiet=True,
        )
        return train(request, fork_server)

    return run
