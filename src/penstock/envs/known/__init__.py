"""Small environments shipped with Penstock: each has a known answer, or makes one kind of bug show at once.

Owns environments registered as penstock/<Name>-v0. Knows Gymnasium only; nothing of blocks, policies or learning.
"""
