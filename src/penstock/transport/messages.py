"""Everything that processes say to one another. Small: tensors never travel, only numbers do.

supervisor -> sampler     Start, HandIn, WriteOff, Stop
sampler -> supervisor     Up, Done, LetGo, Fault
supervisor -> learner     Train, Save, Stop
learner -> supervisor     Ready, Episodes, Trained, Saved, Fault
supervisor -> server      Serve, Ping, Stop
server -> supervisor      Up, Pong, Fault
sampler -> server         Ask
server -> sampler         Answer
"""

from __future__ import annotations

from typing import Any

import msgspec

MAX_LINE, MAX_DETAILS = 1 << 12, 1 << 14
"""Characters of an error and of its traceback that travel, four bytes each at most: a message must fit its channel."""
MAX_EPISODES = 2048
"""Episodes in one message, for the same reason."""


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Root of all messages; the tag says which."""


class Start(Message, frozen=True, tag=True, array_like=True):
    """Run the block's next segment into the slot with the weights of this version."""

    segment: int
    block: int
    slot: int
    version: int


class HandIn(Message, frozen=True, tag=True, array_like=True):
    """Cut this segment after the step that is under way."""

    segment: int


class WriteOff(Message, frozen=True, tag=True, array_like=True):
    """Let go of this segment and its slot."""

    segment: int


class Stop(Message, frozen=True, tag=True, array_like=True):
    """Finish: close what is open and end."""


class Up(Message, frozen=True, tag=True, array_like=True):
    """These blocks have been opened and reset here."""

    blocks: tuple[int, ...]


class Done(Message, frozen=True, tag=True, array_like=True):
    """A segment is complete in its slot. Seconds are this worker's, of all its blocks, since its last Done."""

    segment: int
    steps: int
    rows: int  # valid rows
    short: bool
    environment_s: float
    inference_s: float
    idle_s: float
    elapsed_s: float
    cpu_s: float | None  # None: its environments compute in processes of their own
    chaos_events: int


class LetGo(Message, frozen=True, tag=True, array_like=True):
    """A segment that was written off is no longer touched."""

    segment: int


class Slot(Message, frozen=True, tag=True, array_like=True):
    """Where one segment of a batch lies, and what its header must say."""

    slot: int
    segment: int
    version: int


class Train(Message, frozen=True, tag=True, array_like=True):
    """Train these segments at this version."""

    version: int
    slots: tuple[Slot, ...]
    progress: float  # share of the budget that is used, for annealing


class Save(Message, frozen=True, tag=True, array_like=True):
    """Write a checkpoint of the newest version; `state` goes into its state.json."""

    state: dict[str, Any]


class Ready(Message, frozen=True, tag=True, array_like=True):
    """The learner has published version 0. The board's descriptor travels with this message."""

    num_weights: int
    num_statistics: int
    digest: str | None


class Episodes(Message, frozen=True, tag=True, array_like=True):
    """Finished episodes of the batch that the next Trained is about; for batches with more than fit one message."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]


class Trained(Message, frozen=True, tag=True, array_like=True):
    """`version` is published. What the batch held, and how the update went."""

    version: int
    rows: int  # valid rows
    masked_rows: int
    samples: int
    updates: int
    staleness: tuple[int, ...]  # valid rows by staleness: [0] of staleness 0, ...
    episode_returns: tuple[float, ...]
    episode_lengths: tuple[int, ...]
    metrics: dict[str, float]
    busy_s: float
    digest: str | None
    chaos_events: int


class Saved(Message, frozen=True, tag=True, array_like=True):
    """A checkpoint is on disk."""

    version: int
    path: str


class Serve(Message, frozen=True, tag=True, array_like=True):
    """Answer what is asked over the socket whose descriptor travels with this message: a sampler's line."""


class Ping(Message, frozen=True, tag=True, array_like=True):
    """Are you still there?"""


class Pong(Message, frozen=True, tag=True, array_like=True):
    """Yes, and this is said between two answers, so those before it have been given."""


class Ask(Message, frozen=True, tag=True, array_like=True):
    """Act for this block with exactly this version, on the rows of its slot that its record names."""

    block: int
    segment: int
    version: int
    slot: int
    closing: bool  # the segment ends here: values alone are wanted, and no more will be asked about it


class Answer(Message, frozen=True, tag=True, array_like=True):
    """The answer is in the block's record."""

    block: int
    served: bool  # false: that version is not on the board, as of a segment that was written off
    chaos_events: int


class Fault(Message, frozen=True, tag=True, array_like=True):
    """Something broke here; this process ends."""

    kind: str  # the name of an error in core.errors
    message: str
    details: str


ToWorkers = Start | HandIn | WriteOff | Train | Save | Serve | Ping | Stop
ToSupervisor = Up | Done | LetGo | Ready | Episodes | Trained | Saved | Pong | Fault
Anything = ToWorkers | ToSupervisor | Ask | Answer

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Anything)


def encode(message: Anything) -> bytes:
    """A message as bytes."""
    return _encoder.encode(message)


def decode(data: bytes) -> Anything:
    """Bytes as a message; raises msgspec.ValidationError on anything else."""
    message: Anything = _decoder.decode(data)
    return message
