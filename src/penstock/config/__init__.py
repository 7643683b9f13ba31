"""From what a person wrote to one validated job: presets, layers, checks, and config.toml.

This room knows the settings of every other room and nothing of what they do: no tensor library, no environment library,
no process. All that can be refused by looking at settings alone is refused here, before anything starts.

    sections.py    which settings there are, found in `run.job.Job`
    values.py      a value as written, checked against the type of its setting
    naming.py      what a person may call a setting: full names, leaf names, the other dialect's names
    presets.py     the presets that are shipped, one file each in presets/
    building.py    defaults < preset < assignments, to one job
    checks.py      settings that do not go together
    files.py       config.toml, to and fro, and the digest of what decides the mathematics
"""
