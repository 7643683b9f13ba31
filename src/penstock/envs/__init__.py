"""Environments as the rest of Penstock sees them: blocks of lanes in NEXT_STEP form.

Owns how an environment is named, made, probed, stepped and reset, in one process or several, and small environments of
its own with known answers. Knows nothing of policies, slots, versions, schedules or who asks.
"""
