"""Networks, action distributions, actors and normalisers, and the flat vectors by which weights travel.

This room knows no algorithm, no loss and no worker. `settings`, `layout`, `sampling`, `normaliser` and `numpy_actor` know
no tensor library, so a sampler can act without importing one.
"""
