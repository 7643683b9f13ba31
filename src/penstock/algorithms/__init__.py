"""One file for each algorithm: it composes losses, owns its optimiser, and turns a batch into new weights.

This room knows no process, no schedule of rollouts and no file; `settings` knows no tensor library either.
"""
