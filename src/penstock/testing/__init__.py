"""What Penstock is tested with, shipped so that users can test with it too. Nothing imports this room.

clock.py              a clock that jumps
simulation.py         a world without processes, with trouble at given moments
simulated_run.py      whole runs in it
block_environment.py  the conformance suite of block environments
actor.py              that of actors
channel.py            that of channels
"""
