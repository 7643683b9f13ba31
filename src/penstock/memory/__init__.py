"""Shared memory: arenas that have no name, layouts inside them, and their hand-over by descriptor.

This room knows bytes and arrays. What they mean is known by store and weights; how a descriptor travels, by transport.
"""
