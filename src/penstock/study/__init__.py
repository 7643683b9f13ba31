"""Studies: many runs that differ in one or two settings, what they came to, and a figure of it.

Owns which runs a study is made of, the directory in which it can be left and taken up again, what is demanded of each run
before it counts, the statistics, the table and the figure. Knows nothing of how a run works inside: every run is a child
process, started as a person would start it, and is read from the files that it leaves.

    cells.py       which runs there are: tasks, staleness, corrections, seeds
    ages.py        whether every sample of a run had exactly the age that was asked for
    findings.py    from learning curves to means with intervals
    directory.py   what is kept of every run, and what may be taken up again
    children.py    runs side by side
    conduct.py     a study from its start to its last run
    tables.py, figure.py   what people look at
"""
