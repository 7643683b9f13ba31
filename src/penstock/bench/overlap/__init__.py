"""`penstock bench overlap`: what rollouts and learning gain by overlapping, where environments take their time.

cases.py     what is measured: variances, lengths of the learner's wait, schedules, layouts
delays.py    the delays of every lane, as the runs will draw them; m1 and ma; what the law allows for them
classic.py   the baseline: the textbook loop that waits for the slowest lane at every step; frozen, nothing of the runtime in it
endless.py   the environment; timed.py, the learner that only waits
children.py  every run as a child process; measuring.py has them run; tables.py and plot.py show what came of it
"""
