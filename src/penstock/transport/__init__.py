"""Messages: what is said between processes, and the pipes that carry it. Between machines comes later, here.

This room knows words and descriptors. It does not know why anything is said: that is the supervisor's.
"""
