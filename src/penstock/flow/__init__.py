"""The law: how far rollouts and learning may run ahead of each other.

Pure state machines: events in, commands out. This room knows no clock, no process, no tensor; it imports core only. The
supervisor and the simulated world drive the very same objects. `docs/law.md` proves what follows from them.

    events.py    the closed list of events and commands
    pinned.py    `sync` and `overlap`: batch k is one segment of every block, acted by version max(0, k - K)
    budget.py    how many rounds a budget of steps needs
    free.py      `async`: whatever is ready may join, as long as every deadline can be met
    opening.py   from settings to a law, with everything that must deadlock refused
"""
