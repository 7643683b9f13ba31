"""Checkpoints on disk: format, save, load. This room knows arrays by name and plain data; not what they are for."""
