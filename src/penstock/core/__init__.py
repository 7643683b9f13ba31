"""What every room may rely on: words, types, seeds, clock, errors, and the Protocols through which rooms meet.

This room knows no process, no tensor library, no environment library. It imports NumPy and the standard library only.
"""
