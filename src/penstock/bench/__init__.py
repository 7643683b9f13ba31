"""Measures this machine and what Penstock makes of it: limits, throughput, peers, overlap.

Owns the frozen reference kernels and the order of measurements. Knows nothing of how Penstock computes: the bar is never
measured with Penstock's own models or algorithms, and training is measured from outside, as a person would run it. What the
law allows is the yardstick's to say.
"""
