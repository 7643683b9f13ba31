"""Who is at work, under which title."""

from __future__ import annotations

from penstock.run.roster import Roster


def test_titles_and_roles():
    roster = Roster()
    workers = [roster.enlist("learner", 0), roster.enlist("inference", 0), roster.enlist("sampler", 0, (0, 1))]
    assert [worker.title for worker in workers] == ["learner", "inference server", "sampler-0"]
    assert (roster.learner, roster.server, roster.samplers) == (workers[0], workers[1], [workers[2]])
    assert roster.bury(workers[1].incarnation) == workers[1]
    assert roster.server is None
