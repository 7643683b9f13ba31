"""The versioned board: the learner publishes, everybody else loads exactly the version that they were told. Never torn.

This room knows bytes and versions, not what the numbers mean.
"""
