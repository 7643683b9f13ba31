"""What the bare law allows at best, for given delays: the yardstick of a real run. Draws no conclusion and measures nothing.

pace.py       how long steps take: of lanes that step together, or of lanes with a stream of delays each
law_speed.py  the very law of a run, driven in time that costs nothing
"""
