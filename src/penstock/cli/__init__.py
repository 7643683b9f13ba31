"""The command line: what a person types, and what comes back. It decides nothing about a run.

This room knows no tensor library and no environment library, and imports the rooms below only once a command needs them, so
that `penstock --help` answers at once.

    commands.py   the commands and their flags, as frozen dataclasses
    parser.py     from such a dataclass to a parser whose errors are one line
    main.py       the entry: picks the command, turns errors into a line and an exit code
    train.py, evaluate.py, presets.py, doctor.py, study.py   what each command does
    machine.py    what doctor looks at
    summary.py    the end of a run in a few lines
    apart.py      keeps standard output for one line of JSON
"""
