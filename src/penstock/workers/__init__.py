"""The concurrent subtasks: sampler, learner, evaluation; and the fork server that they come from.

A worker knows its blocks, its slots and its channel. It does not know the law, the other workers, or why it is told what
it is told.

    forkserver.py  starts workers from a process that has torch loaded (imports no torch itself)
    plans.py       what a worker is given when it starts
    process.py     what a started worker does first, and how it ends
    sampling.py    one block running one segment: together or drifting
    sampler.py     hosts blocks, interleaves them, never waits for one while another is ready
    acting.py      where a block's actions come from: an actor at hand, or the inference server
    actors.py      actors by version, and what acts for one segment, in every placement
    inference.py   the inference server
    learner.py     trains batches, publishes versions, keeps the digest
    evaluation.py  plays a finished policy
    chaos.py       delays and slowness on request
"""
