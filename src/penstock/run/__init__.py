"""A run: wiring, supervision, the run directory, the journal.

The supervisor turns what happens into events for the law, and the law's commands into messages. This room knows no tensor
library: it starts what needs one by name.

    job.py            everything a run is made of, as settings
    training.py       one call from a job to a finished run
    wiring.py         names the concrete classes of every room
    supervisor.py     event -> law -> command, stop rules, failures, clean end
    process_world.py  the world of real processes        inline_world.py   everything in one process
    telemetry.py      counts, shares, records            stopping.py       when a run is over
    resources.py      whether there is room    leases.py   until when something must have happened
    directory.py      what lies on disk                  summary.py        what is said at the end
"""
