"""How the death of a worker is told."""

from __future__ import annotations

from penstock.core.protocols import Ended
from penstock.run.obituary import obituary
from penstock.run.roster import Worker

SAMPLER, LEARNER = Worker(3, "sampler", 1, (2, 3)), Worker(0, "learner", 0)


def test_who_how_and_what_its_environments_were_at():
    told = obituary(SAMPLER, Ended(3, -9, "", ("environment 'A' was in step (lane 4)",)), overran_s=None, story="s")
    assert str(told) == (
        "sampler-1 (blocks [2, 3]) was ended by SIGKILL without a word while environment 'A' was in step (lane 4); "
        "the journal has its story"
    )
    assert told.details == "s"


def test_of_several_at_work_the_first_is_in_the_message_and_the_others_in_the_details():
    told = obituary(SAMPLER, Ended(3, 7, "the traceback", ("first", "second", "third")), overran_s=None, story="s")
    assert "ended with exit code 7 without a word while first and 2 more; " in str(told)
    assert told.details.splitlines() == ["the traceback", "second", "third", "s"]


def test_nobody_is_blamed_where_none_was_at_work():
    told = obituary(SAMPLER, Ended(3, -9, "", ()), overran_s=None, story="")
    assert "SIGKILL without a word while none of its environments was at work; " in str(told)


def test_a_lease_that_was_overrun_is_told_with_the_setting():
    told = obituary(SAMPLER, Ended(3, -9, "", ("first",)), overran_s=2.5, story="s")
    lease = "was killed: it took longer than its lease (run.lease_s = 2.5 s for each block) while first; see why it is slow"
    assert lease in str(told)


def test_who_hosts_no_environment_is_told_without_them():
    told = obituary(LEARNER, Ended(0, -11, "Fatal Python error"), overran_s=None, story="")
    assert str(told) == "learner was ended by SIGSEGV without a word; the journal has its story"
    assert told.details == "Fatal Python error"
